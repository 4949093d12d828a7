"""Determine how a job ended whose last report is lost, from the files of the attempt.

The journal has precedence (``AttemptReports``). Without it, the runner's metadata in the output
notebook decides, then its exit status. Without any of these the attempt is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..records.leases import LeaseRecord
from ..records.notices import StopNotice
from ..records.requests import Cause, CauseCode
from ..scheduling.model.states import State
from .termination import by_runner

EXIT_SUCCEEDED = 0
EXIT_FAILED = 1
"""Exit statuses of the runner (``carrel.spawners.runner``) for jobs that ran to completion."""
_REPORT_LOST = "Its last report was lost"


def surviving_end(
    output: bytes | None,
    exit_status: int | None,
    lease: LeaseRecord,
    log_tail: str,
    notice: StopNotice | None = None,
) -> tuple[State, Cause] | None:
    """Return state and cause of an attempt that ended without a report; None if unknown.

    Args:
        output: the output notebook as last saved by the attempt.
        exit_status: the exit status of the runner, if the engine saw it.
        log_tail: the end of the log, for the details of a failure.
        notice: the notice of the attempt.
    """
    marked = _mark(output, lease)
    if marked is not None:
        target, cause = by_runner({"details": log_tail, **marked}, notice)
        if target is State.SUCCEEDED:
            cause = Cause(code=cause.code, message=cause.message)
        return target, cause
    if exit_status == EXIT_SUCCEEDED:
        message = f"{_REPORT_LOST}; its runner exited with success."
        return State.SUCCEEDED, Cause(code=CauseCode.SUCCEEDED, message=message)
    if exit_status == EXIT_FAILED:
        message = f"{_REPORT_LOST}; its runner exited with a failure."
        cause = Cause(code=CauseCode.COMMAND_FAILED, message=message, details=log_tail)
        return State.FAILED, cause
    return None


def _mark(output: bytes | None, lease: LeaseRecord) -> Mapping[str, str] | None:
    """Return the metadata that the runner of this attempt added to the notebook at its end."""
    try:
        mark = json.loads(output or b"")["metadata"]["carrel"]
        of_this = (mark["request"], mark["epoch"]) == (lease.request_id, lease.epoch)
        code, message = CauseCode(mark["outcome"]), str(mark["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return {"code": code, "message": message} if of_this and mark.get("ended_at") else None
