"""What a job left behind tells how it ended when its last report is lost."""

from __future__ import annotations

import json

import pytest

from carrel.hub.records.leases import LeaseRecord, LeaseState
from carrel.hub.records.requests import CauseCode
from carrel.hub.requests.surviving_end import surviving_end
from carrel.hub.requests.termination import by_runner
from carrel.hub.scheduling.model.states import State

LEASE = LeaseRecord(
    id="j-a.2",
    request_id="j-a",
    epoch=2,
    node="local",
    devices=(),
    state=LeaseState.LIVE,
    granted_at=0.0,
    expires_at=0.0,
    seen_at=0.0,
    charged_until=0.0,
)


def notebook(outcome: str, message: str, *, epoch: int = 2, ended_at: str | None = "now") -> bytes:
    mark = {"request": "j-a", "epoch": epoch, "outcome": outcome, "message": message}
    return json.dumps({"metadata": {"carrel": mark | {"ended_at": ended_at}}}).encode()


@pytest.mark.parametrize(
    ("output", "exit_status", "expected"),
    [
        (notebook("succeeded", "Ran 3 cells."), None, (State.SUCCEEDED, CauseCode.SUCCEEDED)),
        (notebook("cell_error", "ValueError"), 0, (State.FAILED, CauseCode.CELL_ERROR)),
        (None, 0, (State.SUCCEEDED, CauseCode.SUCCEEDED)),
        (None, 1, (State.FAILED, CauseCode.COMMAND_FAILED)),
        (None, -9, None),
        (None, None, None),
        (notebook("running", "", ended_at=None), None, None),
        (notebook("succeeded", "Ran 3 cells.", epoch=1), None, None),
        (b'{"metadata": ', None, None),
        (b"[" * 100_000, None, None),
    ],
)
def test_the_notebook_comes_first_and_then_the_exit_status(
    output: bytes | None, exit_status: int | None, expected: tuple[State, CauseCode] | None
) -> None:
    found = surviving_end(output, exit_status, LEASE, "the log")
    assert (found and (found[0], found[1].code)) == expected


def test_a_failure_has_the_end_of_the_log_and_a_success_has_not() -> None:
    failed = surviving_end(None, 1, LEASE, "the log")
    succeeded = surviving_end(notebook("succeeded", "Ran 3 cells."), 0, LEASE, "the log")
    assert failed is not None
    assert succeeded is not None
    assert failed[1].details == "the log"
    assert (succeeded[1].message, succeeded[1].details) == ("Ran 3 cells.", "")


def test_a_traceback_of_carrels_own_code_is_in_the_log_of_the_service_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trace = "Traceback (most recent call last):\n  File runner.py"
    lost = {"code": "lost", "message": "the runner failed: KeyError: 'x'", "details": trace}
    _, cause = by_runner(lost, None)
    assert (cause.message, cause.details) == (lost["message"], "")
    assert trace in caplog.text
    _, cause = by_runner({**lost, "code": "cell_error"}, None)
    assert cause.details == trace
