"""What ``tests.benchmarks.policies`` says of figures that were made up; nothing is simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.simulation.replay.metrics import Evenness, FinishTime, ReplayMetrics, Spread

from .plays import Comparison, Found, Play
from .policies import PARTS, UNKNOWING, figures_table, losses, plays

TIMES = {"fifo": 90.0, "greedy": 40.0, "las": 60.0, "qssf": 25.0, "carrel": 30.0}
SEEDS = range(2)


def made_up(play: Play) -> ReplayMetrics:
    """The second draw is 4 worse than the first; with Carrel no tenant lacks guaranteed quota."""
    time = TIMES.get(play.policy, 20.0) + 4 * play.seed
    times = Spread(mean=time, median=time, p95=time, p99=time)
    even = Evenness(worst=time, mean=time, jain=1.0)
    return ReplayMetrics(
        jobs=1,
        jct=times,
        wait=times,
        utilisation=1.0,
        slowdown=1.0,
        preemptions=0,
        wasted=0.0,
        fragmentation=0.0,
        tenants=even,
        users=even,
        finish_time=FinishTime(worst=time, mean=time, by_tenant={}),
        below_guarantee=0.0 if play.policy == "carrel" else 3600.0,
        below_alone=7200.0,
        jct_alone=replace(times, mean=time + 1000),
    )


def comparison(name: str) -> Comparison:
    found: Found = {play: made_up(play) for play in plays(name, SEEDS)}
    return Comparison(trace=name, title=PARTS[name].title, found=found, seeds=SEEDS, again="again")


@pytest.mark.parametrize("name", PARTS)
def test_all_that_a_part_reports_was_played(name: str) -> None:
    made = comparison(name)
    rows = [*PARTS[name].rows(made)]
    assert rows
    assert len({row.name for row in rows}) == len(rows)
    assert "| carrel, log-normal | 32 s | 32 s |" in figures_table(made), "the mean of two draws"


def test_carrel_is_compared_with_peers_of_the_same_run() -> None:
    rows = {row.name: row for row in PARTS["philly"].rows(comparison("philly"))}
    for what in ("mean completion", "worst finish-time fairness"):
        beside = {peer: rows[f"Philly, {what}, log-normal, beside {peer}"] for peer in UNKNOWING}
        theirs = [row.goal.peer for row in beside.values()]
        assert theirs == [90.0, 40.0, 60.0, 27.0], "the mean of two draws for qssf"
        assert [peer for peer, row in beside.items() if not row.met] == ["qssf"]
    assert rows["Philly, device-hours below a guarantee, log-normal"].met
    alone = "mean completion, each cluster alone, log-normal, beside"
    told = [rows[f"Philly, {alone} {peer}"] for peer in UNKNOWING]
    assert [(row.ours, row.goal.peer) for row in told] == [
        (1032.0, 1090.0),
        (1032.0, 1040.0),
        (1032.0, 1060.0),
        (1032.0, 1027.0),
    ]
    assert "| 0 h | 2 h | 1,032 s |" in figures_table(comparison("philly"))
    for what in ("equal shares and no guarantee", "no quotas"):
        row = rows[f"Philly, mean completion, log-normal, {what}, beside qssf"]
        assert (row.ours, row.goal.peer) == (32.0, 27.0)


def test_where_carrel_loses_is_said() -> None:
    made = comparison("s1")
    said = [row.name for row in losses(made, [*PARTS["s1"].rows(made)])]
    assert said[0] == "S1, mean completion, log-normal, beside qssf"
    assert all("beside qssf" in name for name in said)


def test_far_from_the_goldens_it_fails() -> None:
    assert [row.met for row in PARTS["s1"].rows(comparison("s1"))][:2] == [False, False]
