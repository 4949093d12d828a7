"""A cache of utilization and wait times in past periods, which no longer change.

Views of the pool's history repeat the same weeks except for the newest hours. Only periods that
are not cached or not over are read from the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..interfaces.usage import UsageStore
from ..records.usage import Waits, Window
from ..scheduling.model.snapshot import Kind
from . import aggregation

SETTLED_SECONDS = 60.0
"""Delay after which all events of a period are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBucket:
    """One part of a window: mean levels, and the sorted wait times that ended in it."""

    leased: float
    queued: float
    waits: Mapping[Kind, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHistory:
    """Levels and wait times of every part of a window that has begun."""

    leased: tuple[float, ...]
    queued: tuple[float, ...]
    waits: Waits


@dataclass(slots=True)
class PoolHistoryCache:
    """Caches the buckets of past periods by group and width of the window."""

    _known: dict[tuple[str | None, float], dict[float, HistoryBucket]] = field(default_factory=dict)
    _newest: float = 0.0

    def read(self, store: UsageStore, window: Window, now: float) -> PoolHistory:
        if now < self._newest - SETTLED_SECONDS:
            # The clock was set back: cached periods may no longer be over.
            self._known, self._newest = {}, now
        self._newest = max(self._newest, now)
        key = (window.group, window.width)
        known = self._known.get(key, {})
        starts = [window.since + number * window.width for number in range(window.buckets)]
        first = next((n for n, start in enumerate(starts) if start not in known), window.buckets)
        parts = [known[start] for start in starts[:first]]
        if first < window.buckets:
            parts += self._newer(store, window, starts[first], now)
        begun = [start for start in starts if start < now][: len(parts)]
        settled = now - SETTLED_SECONDS - window.width
        # Replaced as a whole, since several threads read it; older periods are dropped.
        self._known[key] = {
            start: part for start, part in zip(begun, parts, strict=True) if start <= settled
        }
        return PoolHistory(
            leased=tuple(part.leased for part in parts),
            queued=tuple(part.queued for part in parts),
            waits=aggregation.ranked([part.waits for part in parts]),
        )

    @staticmethod
    def _newer(store: UsageStore, window: Window, since: float, now: float) -> list[HistoryBucket]:
        buckets = round((window.until - since) / window.width)
        rest = Window(since=since, until=window.until, buckets=buckets, group=window.group)
        levels, granted = store.levels(rest), store.granted(rest)
        leased = aggregation.mean_levels(rest, levels.leased, levels.released, now)
        queued = aggregation.mean_levels(rest, levels.queued, levels.left, now)
        waits = aggregation.waits_of_parts(rest, granted)
        return [
            HistoryBucket(leased=leased_mean, queued=queued_mean, waits=of_part)
            for leased_mean, queued_mean, of_part in zip(leased, queued, waits, strict=False)
        ]
