"""A stream of small sessions does not starve a larger one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Kind,
    PendingRequest,
    PriorityClass,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.running_set import allocation_of

from ..values import HOUR, NOW, allocation, group, node, pending

GROUPS = (replace(group("lab"), guaranteed=2), group("cs"), group("math"))


def session(
    request_id: str, devices: int = 1, *, of: str = "math", hours: float = 1
) -> PendingRequest:
    made = pending(request_id, devices, group=of, owner=request_id, seconds=hours * HOUR)
    return replace(made, kind=Kind.SESSION, priority=PriorityClass.INTERACTIVE)


LARGE = replace(session("large", 2, of="cs"), submitted_at=NOW - 20 * HOUR)


def scene(*queue: PendingRequest, held: tuple[Allocation, ...]) -> Snapshot:
    """Four devices; lab is guaranteed two of them."""
    return Snapshot(devices=node("a", 4), groups=GROUPS, pending=queue, allocations=held)


ONE_RUNS = (allocation("runs", "a0", group="math", ends_in=0.5 * HOUR),)


@pytest.mark.parametrize(
    ("small", "starts"),
    [
        pytest.param(session("small"), False, id="it would be there for longer"),
        pytest.param(session("small", hours=0.5), True, id="it ends before"),
        pytest.param(session("small", of="lab"), True, id="it is within its guarantee"),
        pytest.param(
            replace(session("small"), kind=Kind.JOB, preemptible=True),
            True,
            id="it is preemptible",
        ),
    ],
)
def test_a_non_preemptible_request_waits_behind_the_first_one_held_for_a_guarantee(
    small: PendingRequest, starts: bool
) -> None:
    plan = decide(scene(LARGE, small, held=ONE_RUNS), NOW)

    assert [start.request_id for start in plan.starts] == ["small"] * starts
    reasons = {wait.request_id: wait.reason for wait in plan.waits}
    assert reasons["large"] is Reason.GUARANTEE
    assert reasons.get("small", Reason.BEHIND_OTHERS) is Reason.BEHIND_OTHERS


def test_the_larger_one_has_its_turn_while_small_ones_keep_coming() -> None:
    """A small session is submitted every half hour and runs for an hour."""
    state, now = scene(LARGE, held=ONE_RUNS), NOW
    for number in range(8):
        new = replace(session(f"s{number}"), submitted_at=now)
        plan = decide(replace(state, pending=(*state.pending, new)), now)
        asked = {each.id: each for each in (*state.pending, new)}
        started_with = [
            allocation_of(asked.pop(start.request_id), Placement(devices=start.devices), now=now)
            for start in plan.starts
        ]
        now += HOUR / 2
        held = (each for each in (*state.allocations, *started_with) if each.until > now)
        state = replace(state, pending=tuple(asked.values()), allocations=tuple(held))

    assert "large" not in {each.id for each in state.pending}
