"""Check for ``carrel doctor`` whether this account can run sandboxes, by running one."""

from __future__ import annotations

from ....hub.errors import CarrelError
from ....hub.records.diagnostics import Finding, Severity
from ..interface import CellStatus, CellStep, SandboxLimits, SandboxSettings
from . import cgroups
from .engine import LocalSandboxes

_SUBJECT = "grading"


def finding() -> Finding:
    """Takes about a second."""
    engine = LocalSandboxes(SandboxSettings(imports=()))
    limits = SandboxLimits()
    try:
        sandbox = engine.open(limits)
        ran = [each.status for each in sandbox.run([CellStep(cell_id="1", source="1 + 1")])]
        sandbox.close()
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
            what="No submission can be graded here: code does not run in the sandbox.",
        )
    return _bounded(limits)


def _bounded(limits: SandboxLimits) -> Finding:
    group = cgroups.make(limits)
    if group is None:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.FINE,
            what="Submissions run in bubblewrap sandboxes. This account cannot create cgroups: "
            "their memory is watched, not limited by the kernel.",
        )
    group.end()
    return Finding(
        subject=_SUBJECT,
        verdict=Severity.FINE,
        what="Submissions run in bubblewrap sandboxes, each in its own cgroup.",
    )
