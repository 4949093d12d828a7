"""Which notice a user is shown: the one that acts first, and none after the end of the request."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.records.leases import LeaseRecord, LeaseState
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import RequestRecord
from carrel.hub.requests.notices import (
    TIME_LIMIT_SECONDS,
    first_to_act,
    shown_in_session,
    warning_out,
)
from carrel.hub.scheduling.model.idleness import IdleWarning
from carrel.hub.scheduling.model.snapshot import Kind, Mark, MarkKind, PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import HeldOut, WarningOut

NOW = 10_000.0
HOUR = 3600
MINUTE = 60


def request(*, ends_in: float, seconds: int = 2 * HOUR, **changes: object) -> RequestRecord:
    """A running session that has so many seconds left."""
    lease = LeaseRecord(
        id="s-1.1",
        request_id="s-1",
        epoch=1,
        node="local",
        devices=("GPU-0",),
        state=LeaseState.LIVE,
        granted_at=NOW + ends_in - seconds,
        expires_at=NOW + 30,
        seen_at=NOW,
        charged_until=NOW,
    )
    record = RequestRecord(
        id="s-1",
        kind=Kind.SESSION,
        owner="ada",
        group="cs101",
        devices=1,
        seconds=seconds,
        idempotency_key="",
        model=None,
        priority=PriorityClass.NORMAL,
        server_name="",
        job=None,
        labels={},
        state=State.RUNNING,
        submitted_at=0.0,
        lease=lease,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def drain(after: float) -> Mark:
    return Mark(target="GPU-0", kind=MarkKind.DRAIN, since=NOW, why="fan", until=NOW + after)


def preemption(after: float) -> StopNotice:
    return StopNotice(
        kind=NoticeKind.URGENT, message="Go.", given_at=NOW, stops_at=NOW + after, group="lab"
    )


def idle(after: float) -> IdleWarning:
    return IdleWarning(warned_at=NOW, stops_at=NOW + after, idle_since=NOW - 1800)


def kind_of(record: RequestRecord, mark: Mark | None = None) -> str | None:
    found = warning_out(record, mark, now=NOW)
    return found and found.kind


@pytest.mark.parametrize(
    ("ends_in", "drained", "preempted", "idle_over", "shown"),
    [
        pytest.param(HOUR, None, None, None, None, id="nothing"),
        pytest.param(36 * MINUTE, 2 * HOUR, None, None, None, id="a drain after its end"),
        pytest.param(2 * HOUR, HOUR, None, None, "drain", id="a drain before its end"),
        pytest.param(HOUR, 2 * MINUTE, 60, None, "preemption", id="preempted before the drain"),
        pytest.param(HOUR, 60, 120, None, "drain", id="drained before it is preempted"),
        pytest.param(HOUR, 1800, None, 600, "idle", id="idle before the drain"),
        pytest.param(300, None, None, 600, "time_limit", id="idle after its end"),
        pytest.param(300, None, None, 200, "idle", id="idle before its end"),
        pytest.param(300, None, 300, None, "preemption", id="preempted at its very end"),
        pytest.param(TIME_LIMIT_SECONDS, None, None, None, "time_limit", id="it ends soon"),
        pytest.param(TIME_LIMIT_SECONDS + 1, None, None, None, None, id="it does not end soon"),
    ],
)
def test_the_notice_that_acts_first_is_shown_and_none_after_the_end(
    ends_in: float,
    drained: float | None,
    preempted: float | None,
    idle_over: float | None,
    shown: str | None,
) -> None:
    record = request(
        ends_in=ends_in,
        notice=None if preempted is None else preemption(preempted),
        warning=None if idle_over is None else idle(idle_over),
    )
    assert kind_of(record, None if drained is None else drain(drained)) == shown


def test_the_time_limit_is_told_of_sessions_that_run_and_may_be_extended() -> None:
    ends = request(ends_in=60)
    found = warning_out(ends, None, now=NOW)
    assert found == WarningOut(
        kind="time_limit",
        stops_at=NOW + 60,
        message="Its time limit of 2 h is over then. You can extend it on the desk.",
        can_keep=False,
        final=True,
    )
    assert found.may_extend
    drained = warning_out(ends, drain(30), now=NOW)
    assert drained is not None
    assert not drained.may_extend
    assert kind_of(replace(ends, kind=Kind.JOB)) is None
    assert kind_of(replace(ends, state=State.STOPPING)) is None


def test_a_short_session_is_warned_in_its_last_quarter() -> None:
    assert kind_of(request(ends_in=151, seconds=600)) is None
    assert kind_of(request(ends_in=150, seconds=600)) == "time_limit"


@pytest.mark.parametrize(
    ("warned", "held", "shown"),
    [
        (None, None, ""),
        (60, None, "warning"),
        (None, 60, "held"),
        (60, 90, "warning"),
        (90, 60, "held"),
        (60, 60, "warning"),
    ],
)
def test_a_session_shows_its_warning_or_the_held_device(
    warned: float | None, held: float | None, shown: str
) -> None:
    warning = None if warned is None else WarningOut(stops_at=warned, message="Idle.")
    device = (
        None
        if held is None
        else HeldOut(request_id="s-2", server_name="gpu", claim_by=held, message="Ready.")
    )
    assert shown_in_session(warning, device) == shown


@given(st.dictionaries(st.text(), st.floats(0, 100)), st.floats(0, 100))
def test_no_notice_that_is_left_out_acts_earlier(times: dict[str, float], ends_at: float) -> None:
    first = first_to_act(times, ends_at=ends_at)
    due = [at for at in times.values() if at <= ends_at]
    assert (first is None) == (not due)
    assert first is None or times[first] == min(due)
