"""The planner decides whenever a request could start, and updates queue positions later."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.controller.planner import LONGEST_REST, Planner
from carrel.hub.interfaces.clock import Instant
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Plan, Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    Group,
    Kind,
    PendingRequest,
    Snapshot,
)
from carrel.hub.scheduling.queue.cycle_state import CycleState
from carrel.hub.scheduling.queue.order import in_order

from ..doubles import no_time
from ..scheduling.strategies import snapshots
from ..scheduling.values import NOW


@dataclass
class SlowTime:
    """A clock that advances by a second per reading, so that every decision seems to take long."""

    now: float = 0.0

    def __call__(self) -> Instant:
        self.now += 1.0
        return Instant(self.now)


class FrozenTime(SlowTime):
    """A clock that advances during decisions only; tests advance it otherwise."""

    slow = True

    def __call__(self) -> Instant:
        return super().__call__() if self.slow else Instant(self.now)


def waits(plan: Plan | None) -> list[str]:
    assert plan is not None
    return [wait.request_id for wait in plan.waits]


def job(number: int, *, devices: int = 1, group: str = "cs101") -> PendingRequest:
    return PendingRequest(
        id=f"j-{number:04}",
        kind=Kind.JOB,
        owner="ada",
        group=group,
        devices=devices,
        seconds=600,
        submitted_at=NOW - 1000 + number,
    )


FULL = Snapshot(
    devices=(Device(id="D0", node="a", index=0, model="A100", memory_bytes=1 << 37),),
    groups=(Group(name="cs101", max_devices=4, max_devices_per_user=4),),
    allocations=(
        Allocation(
            request_id="r",
            owner="bob",
            group="cs101",
            devices=("D0",),
            since=NOW,
            until=NOW + 900,
        ),
    ),
    pending=(job(1), job(2)),
)


def planned() -> tuple[Planner, FrozenTime]:
    time = FrozenTime()
    planner = Planner(time)
    assert waits(planner.plan(FULL, NOW)) == ["j-0001", "j-0002"]
    time.slow = False
    return planner, time


def test_a_new_request_for_a_full_pool_gets_its_position_after_the_pause() -> None:
    planner, time = planned()
    assert planner.rest == LONGEST_REST
    longer = replace(FULL, pending=(*FULL.pending, job(3)))
    assert planner.plan(longer, NOW) is None
    assert (planner.rest, planner.due_in()) == (0.0, LONGEST_REST)
    time.now += LONGEST_REST
    assert waits(planner.plan(longer, NOW)) == ["j-0001", "j-0002", "j-0003"]
    assert planner.plan(longer, NOW) is None


def test_a_request_that_could_start_is_decided_immediately() -> None:
    on_cpu = replace(FULL, pending=(*FULL.pending, job(3, devices=0)))
    freed = replace(FULL, allocations=())
    for snapshot, start in ((on_cpu, "j-0003"), (freed, "j-0001")):
        planner, _ = planned()
        plan = planner.plan(snapshot, NOW)
        assert plan is not None
        assert [each.request_id for each in plan.starts] == [start]


def test_a_plan_that_starts_something_is_followed_by_another() -> None:
    """The store may have refused the grant."""
    free = replace(FULL, allocations=())
    planner = Planner(SlowTime())
    assert planner.plan(free, NOW) == planner.plan(free, NOW) == decide(free, NOW)


def test_a_request_that_leaves_the_queue_or_an_overdue_lease_makes_a_new_plan() -> None:
    planner, time = planned()
    assert waits(planner.plan(replace(FULL, pending=FULL.pending[1:]), NOW)) == ["j-0002"]
    planner, time = planned()
    late = NOW + 1000
    assert planner.plan(FULL, late) is None
    time.now += LONGEST_REST
    plan = planner.plan(FULL, late)
    assert plan is not None
    assert plan.waits[0].estimate is not None
    assert plan.waits[0].estimate.at == late


def test_a_short_queue_is_planned_with_every_change() -> None:
    planner = Planner(no_time)
    planner.plan(FULL, NOW)
    longer = replace(FULL, pending=(*FULL.pending, job(3)))
    assert planner.plan(longer, NOW) == decide(longer, NOW)


@given(snapshots(), st.integers(0, 8), st.integers(0, 8), st.booleans())
def test_without_a_new_plan_nothing_could_have_started(
    snapshot: Snapshot, first: int, second: int, sorted_first: bool
) -> None:
    """A queue that grows in two steps, in its order or not."""
    queue = in_order(snapshot, CycleState(snapshot, NOW)) if sorted_first else snapshot.pending
    planner = Planner(SlowTime())
    for known in sorted((first, second, len(queue))):
        now = replace(snapshot, pending=queue[:known])
        plan = planner.plan(now, NOW)
        if plan is None:
            assert decide(now, NOW).starts == ()
        else:
            assert plan == decide(now, NOW)


def test_a_preemptor_is_estimated_to_start_at_the_end_of_the_notice() -> None:
    lent = replace(FULL.allocations[0], group="lab", preemptible=True)
    owed = replace(
        FULL,
        groups=(
            Group(name="cs101", max_devices=4, max_devices_per_user=4, guaranteed=1),
            Group(name="lab", max_devices=4, max_devices_per_user=4),
        ),
        allocations=(lent,),
        pending=(job(1),),
    )
    planner = Planner(no_time)
    asked = planner.plan(owed, NOW + 1)
    assert asked is not None
    assert [stop.request_id for stop in asked.stops] == ["r"]
    leaving = replace(owed, allocations=(replace(lent, leaving=True),))
    after = planner.plan(leaving, NOW + 2)
    assert after is not None
    (wait,) = after.waits
    assert wait.reason is Reason.RECLAIMING
    assert wait.estimate is not None
    assert wait.estimate.at < lent.until
