"""The trials of a sweep as a table of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..hub.schemas.sweeps import TrialsOut

if TYPE_CHECKING:
    import pandas


def trial_rows(found: TrialsOut) -> list[dict[str, Any]]:
    """Return one dictionary for each trial."""
    return [
        {
            "trial": trial.number,
            **trial.values,
            "state": trial.state,
            "seconds": trial.seconds,
            **trial.reported,
            "message": trial.message,
        }
        for trial in found.trials
    ]


def trial_frame(found: TrialsOut) -> pandas.DataFrame:
    """Return a line for each trial, by its number.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    import pandas  # noqa: PLC0415  # Carrel itself does not need it

    names = ["trial", *found.parameters, "state", "seconds", *found.names, "message"]
    return pandas.DataFrame(trial_rows(found), columns=names).set_index("trial")
