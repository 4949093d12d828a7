"""Cached intervals of the pool's history equal those of the store."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.interfaces.store import Store
from carrel.hub.records.usage import Granted, Levels, Window
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import SqlStore
from carrel.hub.transitions import lifecycle
from carrel.hub.usage.pool_history import PoolHistoryCache
from carrel.hub.usage.reports import window_of

from ...contracts.store_kit import CANCELLED, device, job
from ...property_settings import examples
from ...stores import TemporaryTransactions, new_store

BEGIN, HOUR = 1_000_000.0, 3600.0
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "grant", "end", "wait"]),
        st.integers(1, 20).map(lambda tenth: tenth * HOUR / 10),
        st.sampled_from(["lab", "course"]),
    ),
    min_size=1,
    max_size=25,
)


class Site:
    """A store with requests that are submitted, granted and ended."""

    def __init__(self) -> None:
        self.store: Store = new_store()
        for name in ("lab", "course"):
            self.store.put_group(Group(name=name, max_devices=99, max_devices_per_user=99))
        self.store.sync_devices("n1", [device(f"D{number}") for number in range(30)])
        self.now, self.made = BEGIN, 0
        self.queued: list[str] = []
        self.granted: list[str] = []

    def step(self, what: str, seconds: float, group: str) -> None:
        self.now += seconds
        if what == "submit":
            self.made += 1
            new = job(str(self.made), group=group)
            self.store.submit(new, self.now)
            self.queued.append(new.id)
        elif what == "grant" and self.queued:
            name = self.queued.pop(0)
            start = Start(request_id=name, devices=(f"D{name.removeprefix('j-')}",))
            (lease,) = self.store.grant([start], now=self.now, lease_seconds=30)
            self.granted.append(lease.request_id)
        elif what == "end" and self.granted:
            name = self.granted.pop(0)
            self.store.apply(name, lifecycle.stop, State.CANCELLED, CANCELLED, now=self.now)


@examples(40, 1000, database=None)
@given(steps=STEPS)
def test_a_cached_history_equals_a_new_one(steps: list[tuple[str, float, str]]) -> None:
    site, kept = Site(), PoolHistoryCache()
    for step in steps:
        site.step(*step)
        # The latest events may be in a finished interval: they are visible a moment later.
        now = site.now + 60
        for group in ("", "lab"):
            window = window_of("day", now, group)
            found, fresh = (
                kept.read(site.store, window, now),
                PoolHistoryCache().read(site.store, window, now),
            )
            assert found.leased == pytest.approx(fresh.leased, abs=1e-9)
            assert found.queued == pytest.approx(fresh.queued, abs=1e-9)
            assert found.waits == fresh.waits


@dataclass
class Counting(SqlStore):
    """Records the windows that are read."""

    asked: list[Window] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(TemporaryTransactions())

    def levels(self, window: Window) -> Levels:
        self.asked.append(window)
        return super().levels(window)

    def granted(self, window: Window) -> tuple[Granted, ...]:
        self.asked.append(window)
        return super().granted(window)


def test_only_unfinished_intervals_are_read_again() -> None:
    store, kept, now = Counting(), PoolHistoryCache(), BEGIN
    kept.read(store, window_of("day", now), now)
    assert [window.buckets for window in store.asked] == [24, 24]
    store.asked.clear()
    kept.read(store, window_of("day", now + HOUR), now + HOUR)
    assert [window.buckets for window in store.asked] == [2, 2], (
        "the hour that was going on, and now"
    )


def test_a_clock_set_back_invalidates_the_cache() -> None:
    store, kept, now = Counting(), PoolHistoryCache(), BEGIN
    kept.read(store, window_of("day", now), now)
    store.asked.clear()
    kept.read(store, window_of("day", now - 120), now - 120)
    assert [window.buckets for window in store.asked] == [24, 24]
