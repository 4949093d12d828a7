"""Whether cages can be made on this machine by this account, tried by making one."""

from __future__ import annotations

from ....hub.errors import CarrelError
from ....hub.records.diagnostics import Finding, Severity
from ..interface import CellStatus, CellStep, SandboxLimits, SandboxSettings
from . import cgroups
from .engine import LocalSandboxes

_SUBJECT = "grading"


def finding() -> Finding:
    """For ``carrel doctor``; takes about a second."""
    engine = LocalSandboxes(SandboxSettings(imports=()))
    limits = SandboxLimits()
    try:
        cage = engine.open(limits)
        ran = [each.status for each in cage.run([CellStep(cell_id="1", source="1 + 1")])]
        cage.close()
    except CarrelError as error:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.WARNING,
            what=f"No submission can be graded here. {error.message}",
            mend=error.accepted,
        )
    finally:
        engine.close()
    if ran != [CellStatus.OK]:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.WARNING,
            what="No submission can be graded here: a cage was made, and nothing runs in it.",
        )
    return _bounded(limits)


def _bounded(limits: SandboxLimits) -> Finding:
    group = cgroups.make(limits)
    if group is None:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.FINE,
            what="Submissions run in cages of bubblewrap. This account can make no cgroups, so "
            "that their memory is watched and not held.",
        )
    group.end()
    return Finding(
        subject=_SUBJECT,
        verdict=Severity.FINE,
        what="Submissions run in cages of bubblewrap, each in a cgroup of its own.",
    )
