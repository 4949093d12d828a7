"""Whether cages can be made on this machine by this account, tried by making one."""

from __future__ import annotations

from ....hub.errors import CarrelError
from ....hub.records.diagnostics import Finding, Verdict
from ..interface import CageSettings, CellStatus, Limits, Step
from . import cgroups
from .engine import LocalCages

_SUBJECT = "grading"


def finding() -> Finding:
    """For ``carrel doctor``; takes about a second."""
    engine = LocalCages(CageSettings(imports=()))
    limits = Limits()
    try:
        cage = engine.open(limits)
        ran = [each.status for each in cage.run([Step(cell_id="1", source="1 + 1")])]
        cage.close()
    except CarrelError as error:
        return Finding(
            subject=_SUBJECT,
            verdict=Verdict.WARNING,
            what=f"No submission can be graded here. {error.message}",
            mend=error.accepted,
        )
    finally:
        engine.close()
    if ran != [CellStatus.OK]:
        return Finding(
            subject=_SUBJECT,
            verdict=Verdict.WARNING,
            what="No submission can be graded here: a cage was made, and nothing runs in it.",
        )
    return _bounded(limits)


def _bounded(limits: Limits) -> Finding:
    group = cgroups.make(limits)
    if group is None:
        return Finding(
            subject=_SUBJECT,
            verdict=Verdict.FINE,
            what="Submissions run in cages of bubblewrap. This account can make no cgroups, so "
            "that their memory is watched and not held.",
        )
    group.end()
    return Finding(
        subject=_SUBJECT,
        verdict=Verdict.FINE,
        what="Submissions run in cages of bubblewrap, each in a cgroup of its own.",
    )
