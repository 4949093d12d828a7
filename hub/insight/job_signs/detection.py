"""Find all signs in the history of one attempt."""

from __future__ import annotations

from .devices import device_signs
from .findings import JobHistory, SignFinding
from .loss import loss_signs
from .memory import memory_signs
from .processor import processor_signs


def job_signs(history: JobHistory) -> tuple[SignFinding, ...]:
    """Return the signs of an attempt, at most one of each kind; empty for what is not measured."""
    found: dict[str, SignFinding] = {}
    for detect in (loss_signs, memory_signs, device_signs, processor_signs):
        for finding in detect(history):
            found.setdefault(finding.kind, finding)
    return tuple(found.values())
