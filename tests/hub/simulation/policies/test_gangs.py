"""Jobs of several members: how many start, on which nodes, and how long they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.snapshot import Arrangement, Budget, Group, Period
from carrel.hub.scheduling.placement.device_pool import largest_node
from carrel.hub.simulation.policies.carrel_policy import CARREL
from carrel.hub.simulation.policies.policy import BASELINES, Schedules, SimulatedSite
from carrel.hub.simulation.replay.metrics import figures
from carrel.hub.simulation.workload.job_run import EVERYBODY, Run, request_of
from carrel.hub.simulation.workload.jobs import Gang, TraceJob
from carrel.hub.simulation.workload.nodes import ONE_POOL, parse_nodes
from carrel.hub.simulation.workload.quota_file import unlimited_group, with_gang_headroom

from ...scheduling.values import group
from ..kit import job, played, spans

BOTH = pytest.mark.parametrize("policy", [CARREL, BASELINES["greedy"]], ids=["carrel", "greedy"])


def gang(name: str, at: float, seconds: float, members: str, **more: object) -> TraceJob:
    """Return a job ``2..4x1``: at least two and at most four members of one device each."""
    count, _, devices = members.partition("x")
    least, _, most = count.partition("..")
    given = more.pop("arrangement", Arrangement.PACK)
    assert isinstance(given, Arrangement)
    wanted = int(most or least)
    made = Gang(members=wanted, minimum=int(least), arrangement=given)
    return job(name, at, seconds, wanted * int(devices), gang=made, **more)


def on(nodes: str, *groups: Group, restart_cost: float = 0.0) -> SimulatedSite:
    devices = parse_nodes(nodes).pool(ONE_POOL)
    given = groups or (unlimited_group(EVERYBODY, len(devices)),)
    return SimulatedSite(
        devices=devices,
        groups=with_gang_headroom(given, len(devices)),
        restart_cost=restart_cost,
    )


def lying(
    policy: Schedules, jobs: Sequence[TraceJob], place: SimulatedSite
) -> dict[str, list[str]]:
    """Return the nodes of jobs that start one after the other, one entry for each device."""
    where = {device.id: device.node for device in place.devices}
    scheduler = policy.scheduler(place)
    found: dict[str, list[str]] = {}
    for number, each in enumerate(jobs):
        node = largest_node(place.devices, each.model)
        request = request_of(each, node=node, expected=each.seconds, limit=each.seconds)
        run = Run(
            number=number,
            job=each,
            request=request,
            expected_seconds=each.seconds,
            left=each.seconds,
        )
        scheduler.submit(run, each.submitted_at)
        for begun in scheduler.decide(each.submitted_at):
            assert begun.placement is not None
            found[begun.job.id] = [where[device] for device in begun.placement.devices]
    return found


HALF_TAKEN = (job("one", 0, 100, 2), gang("gang", 10, 50, "2..4x1"))


def test_an_elastic_gang_starts_with_fewer_members_and_runs_as_long_with_them() -> None:
    outcome = played(CARREL, HALF_TAKEN, on("1x4"))
    one, elastic = outcome.runs
    assert spans(outcome) == {"one": [(0, 100)], "gang": [(10, 60)]}
    assert (one.used, elastic.used, elastic.sizes) == (200, 100, [2])
    assert outcome.free == 4 * 100 - one.used - elastic.used


@pytest.mark.parametrize("policy", BASELINES.values(), ids=[*BASELINES])
def test_other_policies_wait_for_all_of_its_members(policy: Schedules) -> None:
    first = job("one", 0, 20, 2)
    outcome = played(policy, (first, HALF_TAKEN[1]), on("1x4"))
    assert spans(outcome) == {"one": [(0, 20)], "gang": [(20, 70)]}
    assert outcome.runs[1].used == 4 * 50


def test_with_enough_devices_an_elastic_gang_has_all_wanted_members() -> None:
    outcome = played(CARREL, (HALF_TAKEN[1],), on("1x4"))
    assert outcome.runs[0].sizes == [4]


@BOTH
def test_a_spread_gang_takes_a_node_for_each_member(policy: Schedules) -> None:
    apart = gang("gang", 0, 50, "3x1", arrangement=Arrangement.SPREAD)
    found = lying(policy, (apart, job("whole", 1, 10, 2)), on("4x2"))
    assert sorted(found["gang"]) == ["node00001", "node00002", "node00003"]
    assert found["whole"] == ["node00004"] * 2


@BOTH
def test_a_packed_gang_takes_as_few_nodes_as_it_can(policy: Schedules) -> None:
    assert set(lying(policy, (gang("gang", 0, 50, "3x1"),), on("2x2,1x4"))["gang"]) == {"node00003"}


@BOTH
@pytest.mark.parametrize("arrangement", [Arrangement.PACK, Arrangement.SPREAD])
def test_a_gang_lies_on_one_switch_where_it_can(
    policy: Schedules, arrangement: Arrangement
) -> None:
    """One node on the first switch is in use: the next two free nodes are on both switches."""
    jobs = (job("one", 0, 100, 2), gang("gang", 1, 50, "2x2", arrangement=arrangement))
    found = lying(policy, jobs, on("2x2@sw1,2x2@sw2"))
    assert found == {"one": ["node00001"] * 2, "gang": ["node00003"] * 2 + ["node00004"] * 2}
    assert lying(policy, jobs, on("4x2"))["gang"] == ["node00002"] * 2 + ["node00003"] * 2


@BOTH
def test_a_job_has_the_model_that_it_asks_for(policy: Schedules) -> None:
    place = on("1x4:V100,2x2:A100")
    jobs = (
        job("any", 0, 10, 4),
        job("small", 1, 10, 1, model="A100"),
        job("whole nodes", 20, 10, 4, model="A100"),
    )
    found = lying(policy, jobs[:2], place)
    assert found == {"any": ["node00001"] * 4, "small": ["node00002"]}
    assert lying(policy, jobs[2:], place) == {"whole nodes": ["node00002"] * 2 + ["node00003"] * 2}


@BOTH
def test_a_member_needs_one_node(policy: Schedules) -> None:
    assert set(lying(policy, (gang("one", 0, 1, "1x4"),), on("2x2,1x4"))["one"]) == {"node00003"}
    with pytest.raises(
        InvalidInput, match=r"in 1 member, .* each member has all of its devices on one node."
    ):
        played(policy, (gang("one", 0, 1, "1x4"),), on("2x2"))


@BOTH
@pytest.mark.parametrize(
    ("large", "words"),
    [
        pytest.param(
            gang("huge", 0, 1, "1..3x1", arrangement=Arrangement.SPREAD),
            "huge asks for 3 devices in 3 members, which do not fit on these nodes: each member "
            "has a node of its own, with all of its devices.",
            id="more members than nodes",
        ),
        pytest.param(
            gang("huge", 0, 1, "1..3x3"), "huge asks for 9 devices in 3 members", id="more devices"
        ),
        pytest.param(
            gang("huge", 0, 1, "2x2", model="A100"),
            "huge asks for 4 devices of A100 in 2 members",
            id="a model that is not there",
        ),
        pytest.param(job("huge", 0, 1, 9, model="A100"), "9 devices of A100", id="no gang"),
    ],
)
def test_a_gang_that_never_has_all_its_members_is_refused_under_every_policy(
    policy: Schedules, large: TraceJob, words: str
) -> None:
    """Policies are compared with the same work."""
    with pytest.raises(InvalidInput, match=words):
        played(policy, (large,), on("2x4"))


def test_small_work_is_stopped_for_members_that_share_a_node() -> None:
    """Both members fit on one node: they do not take a node each."""
    small = [job(f"s{n}", 0, 1000 + n) for n in range(4)]
    outcome = played(BASELINES["srtf"], (*small, gang("gang", 10, 5, "2x2")), on("1x4"))
    assert spans(outcome)["gang"] == [(10, 15)]
    assert [run.preemptions for run in outcome.runs] == [1, 1, 1, 1, 0]


def test_lost_and_remaining_work_of_a_gang_stopped_with_fewer_members() -> None:
    """First two of its four members run, then all of them."""
    lab, cs101 = unlimited_group("lab", 4), replace(unlimited_group("cs101", 4), guaranteed=3)
    jobs = (
        job("first", 0, 100, 2, tenant="cs101"),
        gang("gang", 10, 1000, "2..4x1", tenant="lab"),
        job("owner", 200, 50, 3, tenant="cs101"),
    )
    outcome = played(CARREL, jobs, on("1x4", lab, cs101, restart_cost=60))
    run = outcome.runs[1]
    again_until = 250 + 1000 - 190 + 60
    assert (run.spans, run.sizes) == ([(10, 200), (250, again_until)], [2, 4])
    assert (run.lost, run.again) == (2 * 60, 60)
    assert run.used == 2 * 190 + 4 * (1000 - 190 + 60)
    found = figures([outcome])
    assert found.wait.p99 == 50
    assert found.utilisation == (200 + 150 + run.used) / (4 * again_until)


def test_a_budget_pays_for_the_members_that_there_are() -> None:
    """100 s of two members, and 50 of four; then it is used up."""
    week = Budget(device_seconds=400.0, period=Period.WEEK)
    jobs = (
        job("other", 0, 100, 2, tenant="cs101"),
        gang("few", 1, 100, "2..4x1", tenant="lab"),
        gang("all", 200, 60, "2..4x1", tenant="lab"),
    )
    groups = (replace(unlimited_group("lab", 4), budget=week), unlimited_group("cs101", 4))
    found = spans(played(CARREL, jobs, on("1x4", *groups)))
    assert found["few"] == [(1, 101)]
    assert found["all"][0] == (200, 250)


def test_limits_less_than_the_pool_count_all_members_and_wider_ones_none() -> None:
    groups = (group("small", maximum=5, per_user=3), group("large", maximum=8, per_user=6))
    small, large = with_gang_headroom(groups, 6)
    assert (small.max_devices, small.max_devices_per_user) == (5, 3)
    assert min(large.max_devices, large.max_devices_per_user) >= 6 + 6
