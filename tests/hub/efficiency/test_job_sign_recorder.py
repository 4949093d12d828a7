"""The service looks for signs in running jobs, with readings, reports and time of tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.efficiency.metrics import MOST_VALUES, LossFollower
from carrel.hub.efficiency.recorder import JobSignRecorder
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries
from carrel.hub.schemas import RequestOut
from carrel.hub.transitions.job_signs import FOUND_EVENT, OVER_EVENT, QUIET_SECONDS

from ..world import World

NAN = "NaN"


class LookedAt:
    """A running job, and the recorder that looks at it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.job = world.running_job()
        self.use = UtilizationSeries()
        self.recorder = self.new_recorder()

    def new_recorder(self) -> JobSignRecorder:
        lease = self.world.lease(self.job)
        return JobSignRecorder(self.world.context, lambda: {lease: self.use})

    @property
    def folder(self) -> Path:
        return self.world.context.files.attempt_folder(self.job.id, 1)

    def report(self, *values: float | str, name: str = "loss") -> None:
        with (self.folder / "reports.jsonl").open("a") as file:
            for value in values:
                line = {"name": name, "value": value, "step": None, "at": self.world.clock.now}
                file.write(json.dumps(line) + "\n")

    def look(self, seconds: float = 30.0) -> RequestOut:
        self.world.clock.pass_(seconds)
        self.recorder.reconcile()
        return self.world.see(self.job)

    def events(self) -> list[str]:
        found = self.world.context.store.events(self.job.id, limit=1000)
        return [each.kind for each in found if each.kind in (FOUND_EVENT, OVER_EVENT)]


@pytest.fixture
def looked(tmp_path: Path) -> Iterator[LookedAt]:
    world = World.over(tmp_path)
    yield LookedAt(world)
    world.loop.close()


def test_a_sign_is_shown_with_its_evidence_and_stops_nothing(looked: LookedAt) -> None:
    looked.report(1.0, 0.9, NAN, NAN, NAN)
    seen = looked.look()

    (sign,) = seen.signs
    assert (sign.kind, sign.message) == ("loss-not-finite", "The loss has been NaN since step 2.")
    assert sign.ended_at is None
    assert (seen.state, looked.events()) == ("running", [FOUND_EVENT])


def test_a_sign_is_told_of_once_also_after_a_restart(looked: LookedAt) -> None:
    looked.report(NAN, NAN, NAN)
    looked.look()
    looked.report(NAN)
    looked.look(150.0)
    looked.recorder = looked.new_recorder()
    looked.look()

    assert looked.events() == [FOUND_EVENT]
    assert len(looked.world.see(looked.job).signs) == 1


def test_a_sign_that_has_ended_says_so_and_is_not_told_of_again(looked: LookedAt) -> None:
    looked.report(NAN, NAN, NAN)
    looked.look()
    looked.report(0.5)
    ended = looked.look(QUIET_SECONDS)
    assert ended.signs[0].ended_at == looked.world.clock.now
    looked.report(NAN, NAN, NAN)
    again = looked.look()

    assert again.signs[0].ended_at is None
    assert looked.events() == [FOUND_EVENT, OVER_EVENT]


def test_a_new_attempt_begins_without_signs(looked: LookedAt) -> None:
    looked.report(NAN, NAN, NAN)
    looked.look()
    looked.world.backend.attempts[looked.world.lease(looked.job)].alive = False
    looked.world.settle_with_back_offs(3)

    lease = looked.world.see(looked.job).lease
    assert lease is not None
    assert lease.epoch == 2
    assert looked.world.see(looked.job).signs == []


def test_devices_that_are_not_used_are_a_sign_after_a_quarter_of_an_hour(looked: LookedAt) -> None:
    idle = UtilizationPoint(cores=0.1, device_percent=0.0, device_bytes=0, readings=1)
    looked.use = UtilizationSeries(points=(idle,) * 200)
    seen = looked.look(1000.0)

    assert [sign.kind for sign in seen.signs] == ["devices-unused"]
    assert "has not used any for 16 min" in seen.signs[0].message


def test_a_clock_that_goes_back_adds_no_sign_and_fails_nothing(looked: LookedAt) -> None:
    looked.report(1.0)
    looked.look(-5000.0)

    assert looked.look().signs == []


def test_an_error_about_one_job_does_not_hide_the_signs_of_another(
    looked: LookedAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = LossFollower.read
    broken: list[LossFollower] = []

    def fail(follower: LossFollower, **known: float) -> object:
        broken[:] = broken or [follower]
        if follower is broken[0]:
            raise ZeroDivisionError
        return read(follower, **known)

    monkeypatch.setattr(LossFollower, "read", fail)
    jobs = (looked.job, looked.world.running_job(devices=0))
    for looked.job in jobs:
        looked.report(NAN, NAN, NAN)
    looked.look()

    assert sorted(len(looked.world.see(job).signs) for job in jobs) == [0, 1]


def test_a_file_of_reports_that_is_a_link_is_not_read(looked: LookedAt, tmp_path: Path) -> None:
    looked.report(NAN, NAN, NAN)
    other = tmp_path / "other.jsonl"
    os.rename(looked.folder / "reports.jsonl", other)
    (looked.folder / "reports.jsonl").symlink_to(other)

    assert looked.look().signs == []


def test_long_series_are_thinned_evenly(tmp_path: Path) -> None:
    lines = [
        json.dumps({"name": name, "value": step, "step": step, "at": 100.0 + step})
        for step in range(5 * MOST_VALUES)
        for name in ("loss", "accuracy")
    ]
    (tmp_path / "reports.jsonl").write_text("\n".join(lines) + "\n")
    found = LossFollower(tmp_path).read(age=1e6, began=100.0)

    assert list(found) == ["loss"]
    steps = list(found["loss"].steps)
    assert len(steps) <= MOST_VALUES
    assert steps == list(range(0, 5 * MOST_VALUES, 8))
    assert list(found["loss"].times) == steps
