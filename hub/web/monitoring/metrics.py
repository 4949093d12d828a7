"""``GET /metrics``: metrics in the text format of Prometheus.

Values are read at each scrape; only the cycles of the loop are counted. Values that need the whole
store are cached for ten seconds.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest

from .... import __version__
from ...interfaces.clock import Instant, MonotonicClock, monotonic
from ...notifications.records import OutboxState
from ...notifications.service import NotificationService
from ...records.usage import WAIT_BOUNDS, Census
from ...runtime.context import Context
from ...runtime.loop_metrics import CYCLE_BOUNDS, LoopMetrics
from ...scheduling.model.snapshot import Device, Health, Snapshot
from ...transparency.log_store import LogState
from ...transparency.service import TransparencyLog
from ..live.sse import Streams

_FRESH_SECONDS = 10.0
_UNDECIDED = "undecided"
"""Reason of requests submitted after the last scheduling cycle."""


@dataclass(slots=True, eq=False)
class Metrics:
    """A collector of the service's metrics."""

    context: Context
    loop_metrics: LoopMetrics
    streams: Streams
    notifications: NotificationService | None = None
    log: TransparencyLog | None = None
    clock: MonotonicClock = monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: tuple[Instant, Census, Snapshot] | None = None

    def text(self) -> bytes:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics (the collector interface of prometheus-client)."""
        census, snapshot = self._read()
        yield InfoMetricFamily("carrel", "Version of Carrel.", value={"version": __version__})
        yield self._queue(snapshot)
        yield from _devices(snapshot)
        yield _leases(census)
        yield _waits(census)
        yield _ends(census)
        yield from self._cycles()
        yield GaugeMetricFamily(
            "carrel_event_streams", "Open event streams.", value=self.streams.open
        )
        yield GaugeMetricFamily(
            "carrel_store_bytes", "Size of the database.", value=census.size_bytes
        )
        if self.log is not None:
            yield from _log(self.log.store.state())
        if self.notifications is not None:
            yield from _notifications(self.notifications, self.context.clock())

    def _read(self) -> tuple[Census, Snapshot]:
        with self._lock:
            now = self.clock()
            if self._known is None or now - self._known[0] >= _FRESH_SECONDS:
                store, epoch_now = self.context.store, self.context.clock()
                self._known = (now, store.census(), store.snapshot(epoch_now))
            return self._known[1:]

    def _queue(self, snapshot: Snapshot) -> Metric:
        family = GaugeMetricFamily(
            "carrel_queue_requests", "Queued requests.", labels=["reason", "kind"]
        )
        found = Counter[tuple[str, str]]()
        for waiting in snapshot.pending:
            wait = self.context.plan_cache.wait_of(waiting.id)
            found[str(wait.reason) if wait else _UNDECIDED, str(waiting.kind)] += 1
        for labels, number in sorted(found.items()):
            family.add_metric(labels, number)
        return family

    def _cycles(self) -> Iterator[Metric]:
        cycles = self.loop_metrics.cycles()
        family = HistogramMetricFamily("carrel_cycle_seconds", "Cycles of the scheduling loop.")
        family.add_metric(
            [], _buckets(CYCLE_BOUNDS, cycles.within, cycles.count), sum_value=cycles.seconds
        )
        yield family
        yield CounterMetricFamily(
            "carrel_cycle_failures", "Cycles that ended with an error.", value=cycles.failed
        )


def _notifications(service: NotificationService, now: float) -> Iterator[Metric]:
    census = service.census()
    family = GaugeMetricFamily(
        "carrel_notifications", "Notifications of the last 7 days.", labels=["state"]
    )
    for state in OutboxState:
        family.add_metric([str(state)], census.entries.get(state, 0))
    yield family
    yield GaugeMetricFamily(
        "carrel_notifications_overdue_seconds",
        "How long the longest waiting notification is overdue.",
        value=0.0 if census.oldest_due is None else max(0.0, now - census.oldest_due),
    )
    yield GaugeMetricFamily(
        "carrel_notification_channels_failing",
        "Channels whose last message was not delivered.",
        value=census.failing,
    )


def _log(state: LogState) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "carrel_log_lines", "Lines of the log that can be proved.", value=sum(state.sizes.values())
    )
    yield GaugeMetricFamily(
        "carrel_log_queued_lines", "Lines that are not in the log yet.", value=state.queued
    )
    yield GaugeMetricFamily(
        "carrel_log_unpublished_heads",
        "Signed heads of the log that are not published.",
        value=state.unpublished,
    )
    yield GaugeMetricFamily(
        "carrel_log_published_timestamp_seconds",
        "When a head of the log was published last; 0 for never.",
        value=state.published_at or 0.0,
    )


def _devices(snapshot: Snapshot) -> Iterator[Metric]:
    held = {name for holding in snapshot.allocations for name in holding.devices}
    states = Counter((_state(d, held), str(d.simulated).lower()) for d in snapshot.devices)
    family = GaugeMetricFamily("carrel_devices", "Devices.", labels=["state", "simulated"])
    for labels, number in sorted(states.items()):
        family.add_metric(labels, number)
    yield family
    healthy = [d for d in snapshot.devices if d.health is Health.OK and d.quarantine is None]
    leased = sum(device.id in held for device in healthy)
    yield GaugeMetricFamily(
        "carrel_utilisation_ratio",
        "Fraction of the healthy devices on lease, from 0 to 1.",
        value=leased / len(healthy) if healthy else 0.0,
    )


def _state(device: Device, held: set[str]) -> str:
    """Return the first matching state; a device that is sick under a lease is sick."""
    if device.health in (Health.GONE, Health.SICK):
        return str(device.health)
    if device.quarantine is not None:
        return "quarantined"
    if device.id in held:
        return "leased"
    if device.health is Health.BUSY:
        return "busy"
    return "drained" if device.draining else "free"


def _leases(census: Census) -> Metric:
    family = GaugeMetricFamily("carrel_leases", "Unreleased leases.", labels=["kind"])
    for kind, number in sorted(census.leases.items()):
        family.add_metric([kind], number)
    return family


def _waits(census: Census) -> Metric:
    family = HistogramMetricFamily(
        "carrel_wait_seconds",
        "Time from the submission of a request to its first grant of devices.",
        labels=["kind"],
    )
    for kind, found in sorted(census.waits.items()):
        buckets = _buckets(WAIT_BOUNDS, found.within, found.count)
        family.add_metric([kind], buckets, sum_value=found.seconds)
    return family


def _ends(census: Census) -> Metric:
    family = CounterMetricFamily(
        "carrel_requests_ended", "Ended requests by cause.", labels=["kind", "cause"]
    )
    for (kind, code), number in sorted(census.ends.items()):
        family.add_metric([kind, code], number)
    return family


def _buckets(bounds: Sequence[float], within: Sequence[int], count: int) -> list[tuple[str, float]]:
    pairs = zip((str(bound) for bound in bounds), within, strict=True)
    return [*pairs, ("+Inf", count)]
