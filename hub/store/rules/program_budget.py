"""The check of a job against the budget of its program."""

from __future__ import annotations

from ...errors import OverMaximum
from ...records.identity import Program, ProgramUsage
from ...scheduling.model.text import hours


def left(program: Program, usage: ProgramUsage) -> float:
    """Return the device-seconds of the budget that no job has used or may still use."""
    return max(0.0, program.device_seconds - usage.committed)


def over_budget(program: Program, usage: ProgramUsage, wanted: float) -> OverMaximum:
    """Return the refusal of a job that may use more than what is left of the budget."""
    reserved = max(0.0, usage.committed - usage.used)
    return OverMaximum(
        f"This job may use {hours(wanted)} device-hours, and the program {program.name} has "
        f"{hours(left(program, usage))} of its {hours(program.device_seconds)} left "
        f"({hours(usage.used)} used, {hours(reserved)} reserved for its queued and running jobs).",
        accepted="Request fewer devices or a shorter time limit, or ask the owner for a program "
        "with a larger budget.",
        field="devices",
    )
