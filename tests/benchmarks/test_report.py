"""The form that every benchmark reports in; nothing is timed here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from . import report, spawn
from .report import AtMost, Beside, NotWorseThan, Row
from .spawn import Times

FIELDS = ["name", "ours", "peer", "ratio", "goal", "met", "unit", "command"]
COMMAND = "python -m tests.benchmarks.spawn --json"


def beside(peer: float | None, ours: float | None, *, or_more: float = 100) -> Row:
    goal = NotWorseThan(peer=peer, times=1.05, or_more=or_more)
    return Row(name="spawn", ours=ours, goal=goal, unit="ms", command=COMMAND)


def absolute(ours: float | None) -> Row:
    return Row(name="a wait", ours=ours, goal=AtMost(limit=300), unit="ms", command=COMMAND)


def test_a_row_beside_a_peer() -> None:
    assert beside(peer=1000, ours=1090).fields() == {
        "name": "spawn",
        "ours": 1090,
        "peer": 1000,
        "ratio": 1.09,
        "goal": 1100,
        "met": True,
        "unit": "ms",
        "command": COMMAND,
    }
    assert list(beside(peer=1000, ours=1090).fields()) == FIELDS


@pytest.mark.parametrize(
    ("peer", "ours", "met"),
    [
        (1000.0, 1100.0, True),  # 100 more is more than 1.05 times
        (1000.0, 1100.1, False),
        (4000.0, 4200.0, True),  # and the other way round
        (4000.0, 4200.1, False),
    ],
)
def test_a_goal_with_two_halves_is_met_by_either(peer: float, ours: float, met: bool) -> None:
    assert beside(peer, ours).met is met


def test_an_absolute_goal_has_no_peer_and_its_ratio_is_to_the_goal() -> None:
    assert absolute(150).fields() == {
        "name": "a wait",
        "ours": 150,
        "peer": None,
        "ratio": 0.5,
        "goal": 300,
        "met": True,
        "unit": "ms",
        "command": COMMAND,
    }
    assert not absolute(300.1).met


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf"), 0.0])
def test_what_was_not_measured_is_null_and_never_met(
    nothing: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in (beside(peer=nothing, ours=900), beside(peer=900, ours=nothing), absolute(nothing)):
        fields = row.fields()
        assert fields["ratio"] is None
        assert fields["met"] is False
        assert report.finish([absolute(1), row], as_json=True) == 1
        lines = capsys.readouterr().out.splitlines()
        assert json.loads(lines[1]) == fields
        assert report.finish([row], as_json=False) == 1
        assert "not measured" in capsys.readouterr().out
    assert beside(peer=nothing, ours=900).fields()["peer"] is None
    assert beside(peer=nothing, ours=900).fields()["goal"] is None


def test_no_estimate_where_no_device_is_requested() -> None:
    rows = [
        Row(name="lost", ours=ours, goal=AtMost(limit=0), unit="h", command=COMMAND)
        for ours in (0.0, 0.1)
    ]
    assert [row.met for row in rows] == [True, False]
    assert [row.fields()["ours"] for row in rows] == [0.0, 0.1]
    assert report.table(rows).splitlines()[-2:] == [
        "| lost | 0.00 h | none | none | at most 0 h | yes |",
        "| lost | 0.10 h | none | none | at most 0 h | **no** |",
    ]


def test_beside_a_peer_without_a_goal_everything_is_met() -> None:
    row = Row(name="share", ours=1.5, goal=Beside(peer=1.2), unit="", command=COMMAND)
    assert (row.met, row.ratio, row.fields()["goal"]) == (True, 1.25, None)
    assert report.table([row]).splitlines()[-1] == "| share | 1.50 | 1.20 | 1.25 | none |  |"
    unknown = Row(name="share", ours=1.5, goal=Beside(peer=None), unit="", command=COMMAND)
    assert not unknown.met


def test_the_exit_status_is_zero_only_where_every_row_is_met(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert report.finish([beside(1000, 900), absolute(10)], as_json=True) == 0
    assert report.finish([beside(1000, 900), absolute(301)], as_json=True) == 1
    assert report.finish([], as_json=True) == 1, "no row is no result"
    assert len(capsys.readouterr().out.split("\n")) == 6, "one object a line"


def test_the_table_is_what_the_document_holds(capsys: pytest.CaptureFixture[str]) -> None:
    report.finish([beside(1000, 900), absolute(301)], as_json=False)
    printed = capsys.readouterr().out.splitlines()
    assert f"`{COMMAND}`" in printed
    assert printed[-2:] == [
        "| spawn | 900 ms | 1,000 ms | 0.90 | at most 1.05 times the peer, or 100 ms more | yes |",
        "| a wait | 301 ms | none | 1.00 | at most 300 ms | **no** |",
    ]


@pytest.mark.parametrize("error", [AssertionError("it died"), httpx.ReadTimeout("slow")])
def test_a_measurement_that_breaks_off_leaves_no_values(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [1.0, 2.0]
    with report.measuring("the plain sessions", values):
        raise error
    assert values == []
    assert f"the plain sessions: not measured. {type(error).__name__}" in capsys.readouterr().err


class TestSpawn:
    """The rows of ``tests.benchmarks.spawn``, from figures that were made up."""

    @pytest.fixture(autouse=True)
    def no_installation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @contextmanager
        def nowhere() -> Iterator[None]:
            yield

        def spawns(_site: None, _hub: None, pairs: int, times: Times) -> None:
            times.ours += [1500.0] * pairs
            times.plain += [1600.0] * pairs
            times.leases += [60.0] * pairs

        def handovers(_site: None, _hub: None, count: int, times: Times) -> None:
            times.handovers += [120.0] * (count - 1) + [400.0]

        monkeypatch.setattr(spawn, "site_of_both", nowhere)
        monkeypatch.setattr(spawn, "Hub", lambda _site: None)
        monkeypatch.setattr(spawn, "measure_spawns", spawns)
        monkeypatch.setattr(spawn, "measure_handovers", handovers)

    def test_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert spawn.main(["--json", "--pairs", "3"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [list(row) for row in found] == [FIELDS] * 4
        assert {row["command"] for row in found} == {f"{COMMAND} --pairs 3"}
        assert [(row["ours"], row["peer"], row["ratio"], row["goal"]) for row in found] == [
            (1500, 1600, 0.938, 1700),
            (60, None, 0.6, 100),
            (120, None, 0.4, 300),
            (400, None, 0.4, 1000),
        ]
        assert all(row["met"] is True and row["unit"] == "ms" for row in found)

    def test_a_peer_that_does_not_start_fails_its_row(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def spawns(_site: None, _hub: None, pairs: int, times: Times) -> None:
            times.ours += [1500.0] * pairs
            times.leases += [60.0] * pairs

        monkeypatch.setattr(spawn, "measure_spawns", spawns)
        assert spawn.main(["--json"]) == 1
        first, *others = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert (first["ours"], first["peer"], first["ratio"]) == (1500, None, None)
        assert first["met"] is False
        assert all(row["met"] for row in others)

    def test_an_installation_that_does_not_come_up_fails_every_row(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        @contextmanager
        def broken() -> Iterator[None]:
            raise AssertionError("carrel up said nothing")
            yield

        monkeypatch.setattr(spawn, "site_of_both", broken)
        assert spawn.main(["--json"]) == 1
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(found) == 4
        assert not any(row["met"] or row["ours"] for row in found)


def test_it_says_which_goals_are_met() -> None:
    compared = Row(name="b", ours=9.0, goal=Beside(peer=3.0), unit="s", command=COMMAND)
    assert report.verdict([absolute(1), compared]) == "1 of 1 goals are met."
    assert report.verdict([absolute(1), absolute(301), compared]) == (
        "1 of 2 goals are met. Missed: a wait."
    )
