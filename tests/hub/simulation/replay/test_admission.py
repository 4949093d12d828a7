"""Jobs that quotas would refuse are left out of a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.explanation.admission_rules import Rule
from carrel.hub.scheduling.model.snapshot import (
    Budget,
    Device,
    Group,
    Kind,
    Period,
    Share,
    Snapshot,
)
from carrel.hub.simulation.policies.carrel_policy import CARREL
from carrel.hub.simulation.replay.admission import REASONS, admitted
from carrel.hub.simulation.replay.experiment import Experiment, run
from carrel.hub.simulation.replay.runtime_estimates import Known
from carrel.hub.simulation.workload.jobs import Trace
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool
from carrel.hub.simulation.workload.quota_file import unlimited_group

from ...scheduling import rich
from ...scheduling.values import node
from ..kit import job

SITE = replace(unlimited_group("site", 8), max_seconds=3600)
LONE = unlimited_group("lab", 8)
LAB = replace(LONE, parent="site")
EIGHT = one_pool(1, 8).pool(ONE_POOL)
MIXED = (*node("a", 6, model="H200"), *node("b", 2, model="A100"))
HOUR_A_WEEK = Budget(device_seconds=3600, period=Period.WEEK)


def trace(*jobs: dict[str, object]) -> Trace:
    made = (
        job(str(number), 0, 60, **{"tenant": "lab", **given})  # type: ignore[arg-type]
        for number, given in enumerate(jobs)
    )
    return Trace(name="own", jobs=tuple(made), left_out={"broken": 2})


def left(
    given: Trace, *groups: Group, devices: Sequence[Device] = EIGHT, gangs: bool = False
) -> tuple[list[str], dict[str, int]]:
    """Return the jobs of the replay, and the message about the others."""
    found = admitted(given, {ONE_POOL: devices}, groups, gangs=gangs)
    said = dict(found.left_out)
    assert said.pop("broken") == 2, "what the trace itself left out is still counted"
    return [each.id for each in found.jobs], said


def test_a_job_with_more_time_than_a_group_above_allows_is_left_out_and_counted() -> None:
    given = trace({"limit": 3600.0}, {"limit": 3601.0}, {})
    assert left(given, SITE, LAB) == (
        ["0", "2"],
        {"asked for more time than site allows": 1},
    )


def test_without_a_time_limit_the_runtime_counts() -> None:
    given = trace({"limit": 30.0}, {})
    assert left(given, replace(LONE, max_seconds=59))[0] == ["0"]


def test_a_job_of_less_than_a_second_is_admitted() -> None:
    given = trace({"limit": 0.0}, {})
    assert left(given, LONE) == (["0", "1"], {})


def test_a_job_above_a_whole_budget_is_left_out_and_counted() -> None:
    given = trace({"limit": 1800.0, "devices": 2}, {"limit": 1801.0, "devices": 2})
    assert left(given, SITE, replace(LAB, budget=HOUR_A_WEEK)) == (
        ["0"],
        {"asked for more than the whole budget of lab": 1},
    )


def test_a_share_uses_its_part_of_a_budget() -> None:
    half = Share(compute=0.5)
    given = trace({"limit": 7200.0, "share": half}, {"limit": 7201.0, "share": half})
    assert left(given, replace(LONE, budget=HOUR_A_WEEK))[0] == ["0"]


SESSION = {"kind": Kind.SESSION, "preemptible": False}
OTHERS = replace(unlimited_group("cs101", 8), guaranteed=6)
GUARANTEED = "asked for more devices than lab can have beside the guaranteed quotas of others"


@pytest.mark.parametrize(
    ("jobs", "groups", "reason"),
    [
        pytest.param(
            [{"devices": 2}, {"devices": 3}],
            [replace(LONE, max_devices=2)],
            "asked for more devices than lab may hold",
            id="more than its group may hold",
        ),
        pytest.param(
            [{"devices": 2}, {"devices": 3}],
            [replace(SITE, max_devices=2), LAB],
            "asked for more devices than site may hold",
            id="more than a group above may hold",
        ),
        pytest.param(
            [{"devices": 2}, {"devices": 3}],
            [replace(LONE, guaranteed=1, borrowing=1)],
            "asked for more devices than lab may hold",
            id="more than its guarantee and what it may borrow",
        ),
        pytest.param(
            [{"devices": 2}, {"devices": 3}],
            [replace(LONE, max_devices_per_user=2)],
            "asked for more devices than one member of lab may hold",
            id="more than one member may hold",
        ),
        pytest.param(
            [{"devices": 3}, {"devices": 3, "preemptible": False}],
            [LONE, OTHERS],
            GUARANTEED,
            id="for good, more than others are not guaranteed",
        ),
        pytest.param(
            [{"devices": 2, **SESSION}, {"devices": 3, **SESSION}],
            [LONE, OTHERS],
            GUARANTEED,
            id="a session with more than others are not guaranteed",
        ),
        pytest.param(
            [{"devices": 4}, {"devices": 5}],
            [LONE, replace(OTHERS, lending=2)],
            GUARANTEED,
            id="more than others lend",
        ),
        pytest.param(
            [{"devices": 1}, {"devices": 1, **SESSION}],
            [replace(LONE, max_sessions=0)],
            "asked for a session with devices, and lab allows none",
            id="a session where there are none",
        ),
        pytest.param(
            [{"model": "H200"}, {"model": "A100"}],
            [replace(LONE, models=frozenset({"H200"}))],
            "asked for a model that lab may not use",
            id="a model that its group may not use",
        ),
        pytest.param(
            [{"model": "H200"}, {"model": "B300"}],
            [LONE],
            "asked for a model that these nodes do not have",
            id="a model that is not there",
        ),
        pytest.param(
            [{"devices": 2}, {"devices": 3}],
            [replace(LONE, models=frozenset({"A100"}))],
            "asked for more devices than one node has that lab may use",
            id="more than one node has that its group may use",
        ),
        pytest.param(
            [{"devices": 6}, {"devices": 7}],
            [LONE],
            "asked for more devices than one node has",
            id="more than one node has",
        ),
        pytest.param(
            [{"devices": 6}, {"devices": 9}],
            [LONE],
            "asked for more devices than these nodes have",
            id="more than there are, which is not the fault of a group as wide as the pool",
        ),
        pytest.param(
            [{"tenant": "cs101"}, {}],
            [replace(LONE, parent="site"), replace(SITE, parent="lab"), OTHERS],
            "asked in lab, whose parent groups are missing or form a circle",
            id="in a group of a circle",
        ),
    ],
)
def test_what_live_admission_would_refuse_is_left_out_and_counted(
    jobs: list[dict[str, object]], groups: list[Group], reason: str
) -> None:
    """The first of each two is admitted, the second is not."""
    assert left(trace(*jobs), *groups, devices=MIXED) == (["0"], {reason: 1})


def test_every_admission_rule_has_a_sentence() -> None:
    assert REASONS.keys() == set(Rule)


def test_sessions_of_a_group_that_may_borrow_are_kept() -> None:
    given = trace({"devices": 3, **SESSION})
    assert left(given, replace(LONE, sessions_borrow=True), OTHERS) == (["0"], {})


def test_a_job_of_a_trace_larger_than_a_node_gets_several_nodes() -> None:
    given = trace({"devices": 8}, {"devices": 9})
    devices = one_pool(4, 2).pool(ONE_POOL)
    assert left(given, LONE, devices=devices, gangs=True) == (
        ["0"],
        {"asked for more devices than these nodes have": 1},
    )


def test_a_removed_group_has_no_limits() -> None:
    given = trace({"devices": 6, "tenant": "last-term", "limit": 1e9})
    assert left(given, replace(LONE, max_devices=1)) == (["0"], {})


def test_a_tenant_is_guaranteed_all_of_its_own_nodes() -> None:
    pools = {"lab": one_pool(1, 2).pool(ONE_POOL), "cs101": one_pool(1, 4).pool(ONE_POOL)}
    given = trace(
        {"devices": 2, "preemptible": False},
        {"devices": 3, "preemptible": False},
        {"devices": 4, "preemptible": False, "tenant": "cs101"},
        {"tenant": "without nodes"},
    )
    found = admitted(given, pools, (LONE, OTHERS), gangs=True)
    # A tenant without nodes is named before the replay.
    assert [each.id for each in found.jobs] == ["0", "2", "3"]


def test_jobs_within_all_limits_are_unchanged() -> None:
    given = trace({"limit": 1e9})
    assert admitted(given, {ONE_POOL: EIGHT}, (), gangs=True) is given
    assert admitted(given, {ONE_POOL: EIGHT}, (LONE,), gangs=True) is given


def test_admission_without_quotas_does_not_check_the_size_of_nodes() -> None:
    given = trace({"devices": 9})
    assert admitted(given, {ONE_POOL: EIGHT}, (), gangs=True) is given


def test_a_quota_under_which_no_job_is_admitted_is_an_error() -> None:
    with pytest.raises(
        InvalidInput,
        match="reject all jobs of own: 2 asked for more time than site allows",
    ):
        left(trace({"limit": 3601.0}, {"limit": 9999.0}), SITE, LAB)


@drawn(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5000)), min_size=1, max_size=40),
    st.integers(1, 20_000),
    st.integers(0, 9),
)
def test_each_job_is_refused_as_it_would_be_alone(
    asked: list[tuple[int, int]], budget: int, most: int
) -> None:
    """Those that differ in time alone are decided together."""
    weekly = Budget(device_seconds=budget, period=Period.WEEK)
    groups = (SITE, replace(LAB, max_devices=most, budget=weekly))
    jobs = tuple({"devices": devices, "limit": float(seconds)} for devices, seconds in asked)
    together = Counter[str]()
    for each in jobs:
        # Beside another job, because no job would be left otherwise.
        given = trace(each, {"tenant": "elsewhere"})
        together.update(left(given, *groups, devices=MIXED)[1])
    found = left(trace(*jobs, {"tenant": "elsewhere"}), *groups, devices=MIXED)
    assert found[1] == together


@drawn(rich.snapshots())
def test_all_admitted_jobs_end(asked: Snapshot) -> None:
    """No admitted job turns out to be unable to start."""
    devices = tuple(each for each in asked.devices if each.schedulable)
    groups = tuple(replace(each, budget=None) for each in asked.groups)
    given = Trace(
        name="own",
        jobs=tuple(
            job(
                each.id,
                0.0,
                60.0,
                tenant=each.group,
                user=each.owner,
                devices=each.devices,
                limit=each.seconds,
                model=each.model,
                kind=each.kind,
                preemptible=each.preemptible,
            )
            for each in asked.pending
            if each.devices
        ),
    )
    pools = {ONE_POOL: devices}
    try:
        found = admitted(given, pools, groups, gangs=False)
    except InvalidInput:
        return
    if found.jobs:
        told = Known({each.id: 60.0 for each in found.jobs})
        experiment = Experiment(trace=found, pools=pools, groups=groups, estimator=lambda: told)
        (outcome,) = run(experiment, CARREL).outcomes
        assert len(outcome.runs) == len(found.jobs)
