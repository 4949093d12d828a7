"""What a learned order in shadow would have decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.errors import InvalidInput
from carrel.hub.interfaces.clock import Instant
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.scheduling.model.snapshot import Snapshot
from carrel.hub.shadow_order import store
from carrel.hub.shadow_order.comparison import compare, could_differ
from carrel.hub.shadow_order.recorder import OFF_SECONDS, REST, ShadowRecorder
from carrel.hub.shadow_order.records import ShadowDecision
from carrel.hub.shadow_order.store import MOST_RUNS, ShadowStore
from carrel.hub.store import SqlStore

from ...stores import new_store
from ..doubles import STUDENT1
from ..requests.samples import job
from ..scheduling.values import NOW, group, node, pending
from ..world import World

WIDE = LearnedOrder(name="wide", weights=(0.0, 0.0, 10.0, *(WEIGHTS - 3) * (0.0,)))
ZERO = LearnedOrder(name="zero", weights=WEIGHTS * (0.0,))
QUEUE = Snapshot(
    devices=node("a", 4),
    groups=(group("cs101"),),
    pending=(pending("wide", 4, owner="ada"), pending("narrow", 1, owner="ada")),
)
FOUND = ShadowDecision(at=NOW, queued=2, started=("narrow",), would_start=("wide",), sooner=0.0)


@dataclass
class Ticks:
    """A monotonic clock that tests advance."""

    seconds: float = 0.0

    def __call__(self) -> Instant:
        return Instant(self.seconds)


@dataclass
class Orders:
    """Files of learned orders."""

    found: dict[str, LearnedOrder] = field(default_factory=lambda: {"wide": WIDE, "zero": ZERO})

    def __call__(self, name: str) -> LearnedOrder:
        if name not in self.found:
            raise InvalidInput(f"{name} is damaged.", accepted="A file of the training.")
        return self.found[name]


@pytest.fixture
def shadows() -> ShadowStore:
    return ShadowStore(sql(new_store()).transactions)


def sql(store: object) -> SqlStore:
    assert isinstance(store, SqlStore)
    return store


def test_a_comparison_names_the_requests_that_would_have_started() -> None:
    found = compare(QUEUE, WIDE, NOW)
    assert found is not None
    assert replace(found, sooner=0.0) == FOUND
    assert compare(QUEUE, ZERO, NOW) is None


def test_only_several_requests_of_one_owner_can_differ() -> None:
    wide, narrow = QUEUE.pending
    assert could_differ(QUEUE)
    assert not could_differ(replace(QUEUE, pending=(wide, replace(narrow, owner="bob"))))
    assert not could_differ(replace(QUEUE, pending=(wide,)))


def test_differences_are_counted_and_the_newest_kept(
    shadows: ShadowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_DECISIONS", 3)
    shadows.begin("wide", now=NOW)
    run = shadows.current()
    assert run is not None
    shadows.record(run, None)
    for number in range(5):
        shadows.record(run, replace(FOUND, at=NOW + number))
    counted = shadows.newest()
    assert counted == replace(run, compared=6, differing=5)
    kept = shadows.decisions(run, 9)
    assert [each.at - NOW for each in kept] == [4, 3, 2]
    assert kept[0].started == ("narrow",)


def test_a_run_ends_when_another_begins(shadows: ShadowStore) -> None:
    assert shadows.newest() is None
    for number in range(MOST_RUNS + 5):
        shadows.begin(f"order{number}", now=NOW + number)
        run = shadows.current()
        assert run is not None
        shadows.record(run, FOUND)
    assert run.name == f"order{MOST_RUNS + 4}"
    assert shadows.end(now=NOW + 100)
    assert not shadows.end(now=NOW + 101)
    assert shadows.current() is None
    ended = shadows.newest()
    assert ended is not None
    assert ended.until == NOW + 100


def test_a_recorder_compares_a_sample_and_each_snapshot_once(shadows: ShadowStore) -> None:
    clock = Ticks()
    recorder = ShadowRecorder(shadows, Orders(), clock)
    recorder.note(QUEUE, NOW, starts=True)
    recorder.compare()
    assert shadows.newest() is None
    shadows.begin("wide", now=NOW)
    recorder.note(QUEUE, NOW, starts=True)
    assert not recorder.pending, "it has just looked"
    clock.seconds += OFF_SECONDS
    for _ in range(2):
        recorder.note(QUEUE, NOW, starts=True)
        assert recorder.pending
        recorder.compare()
        clock.seconds += REST
    run = shadows.newest()
    assert run is not None
    assert (run.compared, run.differing) == (1, 1)


def test_a_snapshot_in_which_a_request_starts_is_kept_until_the_next_comparison(
    shadows: ShadowStore,
) -> None:
    clock = Ticks()
    recorder = ShadowRecorder(shadows, Orders(), clock)
    shadows.begin("wide", now=NOW)
    later = replace(QUEUE, pending=(*QUEUE.pending, pending("late", 1, owner="ada")))
    for snapshot in (QUEUE, later):
        recorder.note(snapshot, NOW, starts=True)
        recorder.note(replace(snapshot, devices=()), NOW, starts=False)
        assert recorder.pending == (snapshot is QUEUE), "then it rests"
        clock.seconds += REST
        recorder.compare()
    run = shadows.newest()
    assert run is not None
    assert (run.compared, run.differing) == (2, 2)


def test_a_damaged_file_is_said_once(
    shadows: ShadowStore, caplog: pytest.LogCaptureFixture
) -> None:
    clock, orders = Ticks(), Orders(found={})
    recorder = ShadowRecorder(shadows, orders, clock)
    shadows.begin("wide", now=NOW)
    for _ in range(3):
        recorder.note(QUEUE, NOW, starts=True)
        recorder.compare()
        clock.seconds += REST
    run = shadows.newest()
    assert run is not None
    assert (run.compared, run.problem) == (0, "wide is damaged.")
    assert len(caplog.messages) == 1
    orders.found["wide"] = WIDE
    recorder.note(QUEUE, NOW, starts=True)
    recorder.compare()
    run = shadows.newest()
    assert run is not None
    assert (run.compared, run.problem) == (1, "")


def test_the_loop_decides_as_before_and_the_difference_is_recorded(tmp_path: Path) -> None:
    world = World.over(tmp_path, devices=2)
    shadows = ShadowStore(sql(world.context.store).transactions)
    shadows.begin("wide", now=world.clock())
    recorder = ShadowRecorder(shadows, Orders(), Ticks())
    world.loop.close()
    world.loop = Loop(world.context, node="local", shadow=recorder)
    world.loop.inventory()
    submit: Callable[..., object] = JobService(world.context).submit
    made = [submit(STUDENT1, job(devices=devices)) for devices in (2, 1)]
    world.settle()
    run = shadows.current()
    assert run is not None
    assert (run.compared, run.differing) == (1, 1)
    (found,) = shadows.decisions(run, 9)
    wide, narrow = (each.id for each in made)  # type: ignore[attr-defined]
    assert (found.started, found.would_start) == ((narrow,), (wide,))
    started = [each.id for each in world.context.store.snapshot(world.clock()).pending]
    assert started == [wide]


def test_the_order_of_the_settings_decides(tmp_path: Path) -> None:
    world = World.over(tmp_path, devices=2)
    world.loop.close()
    world.context = replace(world.context, learned_order=WIDE)
    world.loop = Loop(world.context, node="local")
    world.loop.inventory()
    made = [JobService(world.context).submit(STUDENT1, job(devices=n)) for n in (2, 1)]
    world.settle()
    pending_now = world.context.store.snapshot(world.clock()).pending
    assert [each.id for each in pending_now] == [made[1].id]
