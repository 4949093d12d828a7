"""The part of the job form that makes a sweep of the job."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Final

from ...errors import InvalidInput
from ...records.json_value import parse_json
from ...schemas import parsers
from ...schemas.sweeps import MOST_PARALLEL, SweepIn
from ...sweeps.space import MOST_SEARCHED, GridSpace, Pruner
from ...sweeps.space_syntax import space_from_json, space_from_options
from ...sweeps.trials import value_text
from .fields import read

SWEEP_FIELDS: Final = (
    "sweep",
    "search_trials",
    "prune",
    "parallel",
    "objective",
    "goal",
    "trial_time",
    "share",
)
_ACCEPTED: Final = "Such as: lr=0.1,0.01 depth=2,4"


def sweep_body(texts: Mapping[str, str]) -> SweepIn | None:
    """Return the sweep of a form; None if it has no values to try.

    Args:
        texts: by the names in ``SWEEP_FIELDS``.

    Raises:
        InvalidInput: with the field.
    """
    if not texts["sweep"]:
        return None
    accepted = f"A whole number from 1 to {MOST_PARALLEL}."
    try:
        parallel = int(texts["parallel"] or 1)
    except ValueError:
        parallel = 0
    if not 1 <= parallel <= MOST_PARALLEL:
        raise InvalidInput(
            f"{texts['parallel'][:40]!r} is not a number of trials at a time.",
            accepted=accepted,
            field="parallel",
        )
    limit = texts["trial_time"]
    return SweepIn.model_validate(
        {
            "space": _space(texts["sweep"], texts["search_trials"], texts["prune"]),
            "parallel": parallel,
            "share": texts["share"] != "no",
            "together": texts["share"] == "together",
            "trial_seconds": read(parsers.seconds, limit, "trial_time") if limit else 0,
            "objective": texts["objective"][:100],
            "maximize": texts["goal"] == "largest",
        }
    )


def parallel_trials(fields: Mapping[str, str]) -> int:
    """Return how many trials of a form run at a time; 1 as long as it is no sweep."""
    text = fields.get("parallel", "").strip()
    is_sweep = fields.get("sweep", "").strip() and fields.get("kind") != "command"
    return min(MOST_PARALLEL, max(1, int(text[:9]))) if is_sweep and text.isdecimal() else 1


def _space(text: str, trials: str, pruner: str) -> Mapping[str, object]:
    """Return the space of ``lr=0.1,0.01 depth=2,4``, or of JSON.

    Args:
        trials: a number of trials, for which a search chooses values.
        pruner: of the search.
    """
    if pruner not in ("", Pruner.NONE) and not trials:
        raise InvalidInput(
            "Only trials of a search are stopped early.",
            accepted="Give a number of trials to search, or stop no trial early.",
            field="prune",
        )
    if trials and (not trials.isdecimal() or text.startswith("{")):
        raise InvalidInput(
            f"{trials[:40]!r} is not a number of trials to search.",
            accepted=f"A whole number from 1 to {MOST_SEARCHED:,}; nothing beside JSON.",
            field="search_trials",
        )
    try:
        if text.startswith("{"):
            return space_from_json(parse_json(text)).as_json()
        words = shlex.split(text)
        if not trials:
            return space_from_options(grid=words).as_json()
        return space_from_options(
            searched=words, trials=int(trials[:9]), pruner=pruner or None
        ).as_json()
    except InvalidInput as error:
        error.field = "sweep"
        raise
    except ValueError as error:
        raise InvalidInput(
            f"The values to try are not quoted correctly: {error}.",
            accepted=_ACCEPTED,
            field="sweep",
        ) from None


def sweep_texts(sweep: SweepIn | None, shown_span: str) -> dict[str, str]:
    """Return the fields of a form with a stored sweep.

    Args:
        shown_span: its time limit of a trial, as the form shows it.
    """
    if sweep is None:
        return {}
    space = space_from_json(sweep.space)
    text = json.dumps(sweep.space)
    if isinstance(space, GridSpace):
        words = (
            f"{name}={','.join(map(value_text, values))}" for name, values in space.values.items()
        )
        text = shlex.join(words)
    return {
        "sweep": text,
        "parallel": str(sweep.parallel),
        "objective": sweep.objective,
        "goal": "largest" if sweep.maximize else "smallest",
        "trial_time": shown_span if sweep.trial_seconds else "",
        "share": "together" if sweep.together else "yes" if sweep.share else "no",
    }
