"""Levels and waits of the parts of time that are over: these stay as they were, so once is enough.

How full the pool was is asked again and again, for the same weeks but for the newest hours. Only
the parts that are not known yet, or not over yet, are read from the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..interfaces.usage import UsageStore
from ..records.usage import Waits, Window
from ..scheduling.model.snapshot import Kind
from . import aggregation

SETTLED_SECONDS = 60.0
"""After so long, whatever happened in a part of time has been written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBucket:
    """One part of a window: mean levels, and the waits that ended in it, in order."""

    leased: float
    queued: float
    waits: Mapping[Kind, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHistory:
    """Of every part of a window that has begun."""

    leased: tuple[float, ...]
    queued: tuple[float, ...]
    waits: Waits


@dataclass(slots=True)
class PoolHistoryCache:
    """Kept by the service; what it knows is right for any window of the same width and group."""

    _known: dict[tuple[str | None, float], dict[float, HistoryBucket]] = field(default_factory=dict)
    _newest: float = 0.0

    def read(self, store: UsageStore, window: Window, now: float) -> PoolHistory:
        if now < self._newest - SETTLED_SECONDS:
            # The clock was put back: what was over may not be over any more.
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
        # Replaced as a whole: several threads may read. What has left the window is forgotten.
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
            HistoryBucket(leased=lent, queued=waited, waits=of_part)
            for lent, waited, of_part in zip(leased, queued, waits, strict=False)
        ]
