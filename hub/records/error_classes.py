"""The class of each error, and how often and after which pause a job is retried.

One table decides: the cause of a failed attempt gives its class, the class gives the number of
retries. User errors and jobs that ran out of memory are never retried, since the next attempt would
end in the same way (docs/explanation/retries.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from .requests import CauseCode

INFRASTRUCTURE_RETRIES = 3
"""Retries after a loss, unless the job sets its own number."""
DEVICE_FAULT_RETRIES = 5
"""Retries after a failed device; each one takes a device out of service."""
FIRST_BACK_OFF_SECONDS = 5.0
LONGEST_BACK_OFF_SECONDS = 600.0


class ErrorClass(StrEnum):
    """What failed, and thereby whether another attempt can help."""

    INFRASTRUCTURE = "infrastructure"
    """The node, a device, the engine or the start: not the job."""
    TRANSIENT = "transient"
    """A condition that may have passed at the next attempt."""
    OUT_OF_MEMORY = "out_of_memory"
    """It needs more memory than its limit."""
    USER = "user"
    """The job's own code, or what it was submitted with."""


ERROR_CLASSES: Mapping[CauseCode, ErrorClass] = MappingProxyType(
    {
        CauseCode.LOST: ErrorClass.INFRASTRUCTURE,
        CauseCode.DEVICE_FAULT: ErrorClass.INFRASTRUCTURE,
        CauseCode.START_FAILED: ErrorClass.INFRASTRUCTURE,
        CauseCode.KERNEL_NOT_STARTED: ErrorClass.TRANSIENT,
        CauseCode.CONNECTION_FAILED: ErrorClass.TRANSIENT,
        CauseCode.DISK_FULL: ErrorClass.TRANSIENT,
        CauseCode.TEMPORARY_FAILURE: ErrorClass.TRANSIENT,
        CauseCode.OUT_OF_MEMORY: ErrorClass.OUT_OF_MEMORY,
        CauseCode.CELL_ERROR: ErrorClass.USER,
        CauseCode.COMMAND_FAILED: ErrorClass.USER,
        CauseCode.KERNEL_DIED: ErrorClass.USER,
        CauseCode.INVALID_JOB: ErrorClass.USER,
        CauseCode.MISSING_RESULT: ErrorClass.USER,
        CauseCode.MISSING_SECRET: ErrorClass.USER,
    }
)
"""Causes that are missing here are no errors: ends by a user, a limit or an administrator."""


def error_class(code: CauseCode) -> ErrorClass | None:
    """Return the class of an error; None for a cause that is not an error."""
    return ERROR_CLASSES.get(code)


def retry_limit(code: CauseCode, requested: int | None) -> int:
    """Return how often a job is retried after this cause.

    Args:
        requested: the number that the job was submitted with; with 0 it never runs twice.
    """
    found = error_class(code)
    if found is ErrorClass.TRANSIENT:
        return requested or 0
    if found is not ErrorClass.INFRASTRUCTURE or requested == 0:
        return 0
    if code is CauseCode.DEVICE_FAULT:
        return DEVICE_FAULT_RETRIES
    return INFRASTRUCTURE_RETRIES if requested is None else requested


def back_off_seconds(found: ErrorClass, retry: int) -> float:
    """Return the pause before a retry, counted from 1; it doubles up to its maximum.

    The first retry after an infrastructure error starts at once, since another node or device takes
    it. A transient condition needs time to pass.
    """
    if found is ErrorClass.INFRASTRUCTURE:
        retry -= 1
    if retry < 1:
        return 0.0
    return min(LONGEST_BACK_OFF_SECONDS, FIRST_BACK_OFF_SECONDS * 2.0 ** min(retry - 1, 30))
