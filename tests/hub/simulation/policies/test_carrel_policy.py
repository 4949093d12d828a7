"""Carrel's own policy in the simulator, which uses the scheduler of the live service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.snapshot import Device, Group, Kind, Share
from carrel.hub.scheduling.quota.accounting import decayed
from carrel.hub.simulation.policies.carrel_policy import CARREL
from carrel.hub.simulation.policies.policy import Schedules, SimulatedSite
from carrel.hub.simulation.workload.job_run import request_of
from carrel.hub.simulation.workload.jobs import TraceJob
from carrel.hub.simulation.workload.quota_file import unlimited_group
from carrel.hub.simulation.workload.usage import SimulatedUsage
from carrel.hub.transitions.transition import LeaseInterval

from ...scheduling.values import node
from ..kit import job, played, site, spans


def shared_site(devices: int, *groups: Group, restart_cost: float = 0.0) -> SimulatedSite:
    return replace(site(1, devices, restart_cost=restart_cost), groups=groups)


def guaranteed(name: str, devices: int, *, of: int) -> Group:
    return replace(unlimited_group(name, of), guaranteed=devices)


def jobs_of(tenant: str, at: float, seconds: float, count: int) -> Sequence[TraceJob]:
    return [job(f"{tenant}{n}", at, seconds, tenant=tenant, user=tenant) for n in range(count)]


def test_borrowed_devices_are_reclaimed_by_the_owning_group() -> None:
    place = shared_site(
        4, guaranteed("lab", 2, of=4), guaranteed("cs101", 2, of=4), restart_cost=60
    )
    jobs = (*jobs_of("lab", 0, 1000, 4), *jobs_of("cs101", 100, 50, 2))
    outcome = played(CARREL, jobs, place)
    found = spans(outcome)
    assert found["cs1010"] == found["cs1011"] == [(100, 150)]
    stopped = [run for run in outcome.runs if run.preemptions]
    assert [run.job.tenant for run in stopped] == ["lab", "lab"]
    assert [run.spans for run in stopped] == [[(0, 100), (150, 1110)]] * 2
    assert [run.lost for run in stopped] == [60.0, 60.0]


def test_the_allocation_with_the_most_time_left_is_preempted() -> None:
    """A stop costs all jobs the same here, and the scheduler knows it."""
    place = shared_site(
        2, guaranteed("lab", 0, of=2), guaranteed("cs101", 1, of=2), restart_cost=60
    )
    long = job("long", 0, 5000, tenant="lab", user="lab")
    short = job("short", 3000, 1000, tenant="lab", user="lab")
    (owner,) = jobs_of("cs101", 3100, 50, 1)
    outcome = played(CARREL, (long, short, owner), place)
    assert spans(outcome)["short"] == [(3000, 4000)]
    assert spans(outcome)["long"] == [(0, 3100), (3150, 5110)]


def test_small_work_is_relocated_for_a_guaranteed_whole_node() -> None:
    """Two nodes of two devices; the short jobs end, and the others are on both nodes."""
    place = replace(
        site(2, 2),
        groups=(guaranteed("lab", 2, of=4), guaranteed("cs101", 2, of=4)),
        restart_cost=60,
    )
    small = [
        job(f"lab{n}", 0, 100 if n % 2 else 1000, tenant="lab", user=f"lab{n}") for n in range(4)
    ]
    wants = job("wants", 200, 50, 2, tenant="cs101", user="cs101")
    outcome = played(CARREL, (*small, wants), place)
    found = spans(outcome)
    assert found["wants"] == [(200, 250)]
    assert sorted(run.preemptions for run in outcome.runs) == [0, 0, 0, 0, 1]
    (stopped,) = (run for run in outcome.runs if run.preemptions)
    assert stopped.spans == [(0, 200), (200, 1060)]


def test_a_burst_of_one_user_passes_no_other_user() -> None:
    place = shared_site(1, unlimited_group("lab", 1))
    burst = [job(f"b{n}", 0, 100, tenant="lab", user="bob") for n in range(6)]
    one = job("a", 1, 100, tenant="lab", user="ada")
    found = spans(played(CARREL, [*burst, one], place))
    assert found["a"] == [(100, 200)]


def test_a_maximum_holds_its_own_group_only() -> None:
    place = shared_site(
        3, replace(unlimited_group("lab", 3), max_devices=1), unlimited_group("cs101", 3)
    )
    found = spans(played(CARREL, (*jobs_of("lab", 0, 100, 2), *jobs_of("cs101", 0, 100, 2)), place))
    assert sorted(each for spans in found.values() for each in spans) == [
        *[(0, 100)] * 3,
        (100, 200),
    ]


def test_a_request_with_a_deadline_comes_before_its_equals() -> None:
    place = shared_site(1, unlimited_group("lab", 1))
    blocks, last = job("blocks", 0, 100, tenant="lab"), job("last", 1, 50, tenant="lab")
    due = replace(job("due", 2, 50, tenant="lab"), deadline=200.0)
    found = spans(played(CARREL, (blocks, last, due), place))
    assert found == {"blocks": [(0, 100)], "due": [(100, 150)], "last": [(150, 200)]}


def test_a_gang_starts_as_a_whole() -> None:
    jobs = (
        job("one", 0, 100, tenant="lab"),
        job("gang", 1, 10, 6, tenant="lab"),
        job("late", 2, 20, 2, tenant="lab"),
    )
    place = replace(site(3, 2), groups=(unlimited_group("lab", 6),))
    found = spans(played(CARREL, jobs, place))
    assert found == {"one": [(0, 100)], "gang": [(100, 110)], "late": [(2, 22)]}


def test_use_decays_as_the_ledger_of_the_live_service_does() -> None:
    request = request_of(job("a", 0, 1, tenant="lab"), node=8, expected=1.0, limit=1.0)
    past = SimulatedUsage(half_life=1000.0)
    past.change(request, 2.0, 100.0)
    past.change(request, -2.0, 400.0)
    past.change(request, 1.0, 600.0)
    expected = sum(
        decayed(LeaseInterval(starts_at=start, ends_at=end, devices=devices), 900.0, 1000.0)
        for start, end, devices in ((100.0, 400.0, 2), (600.0, 900.0, 1))
    )
    (use,) = past.uses(900.0)
    assert (use.group, use.owner, use.device_seconds) == ("lab", "lab", pytest.approx(expected))


LAB = unlimited_group("lab", 8)
TOGETHER = (*node("a", 2, model="A100"), *node("b", 2, model="A100"), *node("c", 8))


@pytest.mark.parametrize(
    ("stuck", "groups", "devices", "said"),
    [
        pytest.param(
            job("x", 1, 10, 2, tenant="lab", preemptible=False),
            (LAB, guaranteed("cs101", 7, of=8)),
            node("c", 8),
            "x of lab could not start even alone. Because of the guaranteed quotas of other "
            "groups, lab can hold at most 1 device for work that cannot be preempted; you asked "
            "for 2.",
            id="the guaranteed quota of others",
        ),
        pytest.param(
            job("x", 1, 10, tenant="lab", kind=Kind.SESSION, preemptible=False),
            (replace(LAB, max_sessions=0),),
            node("c", 8),
            "x of lab could not start even alone. lab allows no sessions with devices; you asked "
            "for 1.",
            id="no sessions",
        ),
        pytest.param(
            job("x", 1, 10, tenant="lab", model="H200"),
            (replace(LAB, models=frozenset({"A100"})),),
            TOGETHER,
            "x of lab could not start even alone. lab may not use devices of the model H200.",
            id="a model that it may not use",
        ),
        pytest.param(
            job("x", 1, 10, 3, tenant="lab"),
            (replace(LAB, models=frozenset({"A100"})),),
            TOGETHER,
            "x of lab could not start even alone. No node has more than 2 devices that lab may "
            "use; you asked for 3.",
            id="no node has as many",
        ),
        pytest.param(
            job("x", 1, 10, 10, tenant="lab"),
            (replace(unlimited_group("lab", 12), models=frozenset({"A100"})),),
            (
                *node("a", 8, model="A100"),
                *node("b", 1, model="A100"),
                *node("d", 1, model="A100"),
                *node("c", 8),
                *node("e", 2),
            ),
            "x of lab could not start even alone. The devices that it may use cannot hold it: "
            "a job that is larger than a node gets whole nodes as large as the largest one, and "
            "the rest on one more.",
            id="a gang that does not lie on the nodes",
        ),
    ],
)
def test_jobs_that_could_not_start_even_alone_are_named_with_the_reason(
    stuck: TraceJob, groups: tuple[Group, ...], devices: tuple[Device, ...], said: str
) -> None:
    before = job("before", 0, 10, tenant="lab")
    place = SimulatedSite(devices=devices, groups=groups)
    with pytest.raises(InvalidInput) as error:
        played(CARREL, (before, stuck), place)
    assert error.value.message == f"With carrel, 1 job never started. {said}"


@pytest.mark.parametrize(
    ("large", "said"),
    [
        pytest.param(
            job("x", 0, 10, 16),
            "x asks for 16 devices, which do not fit on these nodes: a job that is larger than a "
            "node gets whole nodes as large as the largest one, and the rest on one more.",
            id="a gang",
        ),
        pytest.param(
            job("x", 0, 10, 9, model="H200"),
            "x asks for 9 devices of H200, and these nodes have 16.",
            id="of a model",
        ),
        pytest.param(
            job("x", 0, 10, share=Share(compute=0.5, memory_bytes=1 << 60)),
            "x asks for a larger share of a device than any of these nodes has.",
            id="a share",
        ),
    ],
)
def test_jobs_too_large_for_the_nodes_are_named_with_the_reason(large: TraceJob, said: str) -> None:
    devices = (*node("a", 8), *node("b", 4, model="A100"), *node("c", 4, model="A100"))
    with pytest.raises(InvalidInput) as error:
        played(CARREL, (large,), SimulatedSite(devices=devices))
    assert error.value.message == said


class Idle:
    """A policy that never starts anything."""

    name = "idle"
    source = ""
    waiting = 0
    free = 0.0

    def scheduler(self, place: SimulatedSite) -> Idle:
        return self

    def submit(self, run: object, now: float) -> None: ...

    def end(self, run: object, now: float) -> None: ...

    def decide(self, now: float) -> tuple[()]:
        return ()

    def next_change(self) -> float:
        return inf


def test_a_policy_that_starts_nothing_is_reported_as_the_cause() -> None:
    idle: Schedules = Idle()
    with pytest.raises(InvalidInput) as error:
        played(idle, (job("x", 0, 10, tenant="lab"),), shared_site(2, LAB))
    assert error.value.message == (
        "With idle, 1 job never started. x of lab could start alone, and the policy does not "
        "start it."
    )
    assert error.value.field == "policy"
