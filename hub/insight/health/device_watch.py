"""Detect a fault in the readings of one device, beside those of its siblings.

Siblings are devices of the same model on the same node. Each detector counts readings, not seconds,
so that a step of the clock or a pause of the service neither hides nor makes a fault.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final

from ...interfaces.devices import DeviceSignals, ThrottleReason
from .findings import Consequence, FindingKind
from .statistics import Baseline, CumulativeSum, RecentShare, median_of
from .xids import hardware_errors

BUSY_PERCENT: Final = 50.0
"""Utilization from which clocks and links are judged; an idle device saves power."""
CONSECUTIVE: Final = 3
"""Readings in a row that show a state; a single one may be a glitch."""
USUAL: Final = 30
"""Readings after which it is known what is usual for a device."""
OFTEN: Final = 0.9
LEAST_MISSING: Final = 2
"""A device that does not report this many of the readings that it often reported is suspect."""
LOST_SHARE: Final = 0.1
"""A link or power limit below its usual value by more than this share is a fault."""
OWN_SHARE: Final = 0.015
"""By how much, at most, devices of one model run at different clocks when all are in order."""
COUNTER_READINGS: Final = 60
COUNTER_FACTOR: Final = 10.0
"""A counter is conspicuous that grows by this factor faster than usual, …"""
LEAST_CORRECTED: Final = 20.0
LEAST_REPLAYS: Final = 50.0
"""… and by at least this many in ``COUNTER_READINGS``."""
_HARDWARE: Final = frozenset(
    {ThrottleReason.HARDWARE_THERMAL, ThrottleReason.POWER_BRAKE, ThrottleReason.HARDWARE}
)
UNDER_LOAD: Final = frozenset(
    {FindingKind.THROTTLED, FindingKind.SLOW_CLOCK, FindingKind.NARROW_LINK}
)
"""What shows under load only."""
LATELY: Final = 180
"""Readings (half an hour) for which heat under load is remembered of a device without load."""
_EXPLAINED: Final = frozenset({ThrottleReason.POWER_CAP, ThrottleReason.CHOSEN})
"""Reasons for a lower clock that are no fault."""
_READINGS: Final = tuple(
    field.name
    for field in fields(DeviceSignals)
    if field.name not in {"xids", "logged_xids", "utilization"}
)

Symptom = tuple[FindingKind, Consequence, str]
"""What is conspicuous in the newest reading, what follows, and the evidence."""


@dataclass(slots=True)
class _Counter:
    """A counter of the driver: how much it grew in each of the last readings."""

    least: float
    last: float | None = None
    grown: deque[float] = field(default_factory=lambda: deque(maxlen=COUNTER_READINGS))
    usual: Baseline = field(
        default_factory=lambda: Baseline(first=COUNTER_READINGS, rate=1 / 2000, step=1.0)
    )

    def add(self, value: float | None) -> float:
        """Return its growth in the last readings."""
        if value is not None:
            if self.last is not None:
                # It begins again when the driver is loaded.
                self.grown.append(value - self.last if value >= self.last else 0.0)
                self.usual.add(self.grown[-1])
            self.last = value
        return sum(self.grown)

    def conspicuous(self, siblings: Sequence[_Counter]) -> bool:
        """Whether it grows faster than it did before, and than those of the siblings."""
        others = median_of([sum(each.grown) for each in siblings], least=1)
        if others is None and self.usual.value is None:
            return False
        own = (self.usual.value or 0.0) * COUNTER_READINGS
        return sum(self.grown) >= max(self.least, COUNTER_FACTOR * max(own, others or 0.0))


@dataclass(slots=True)
class DeviceWatch:
    """The past of one device, as far as its detectors need it.

    Attributes:
        signals: the newest readings, with the errors that were not read before.
        warm: whether heat or power slowed it down in the last reading under load, and in half of
            those before it.
        readings_since_busy: number of readings since then; None before the first one.
    """

    signals: DeviceSignals = field(default_factory=DeviceSignals)
    warm: bool = False
    readings_since_busy: int | None = None
    corrected: _Counter = field(default_factory=lambda: _Counter(LEAST_CORRECTED))
    replays: _Counter = field(default_factory=lambda: _Counter(LEAST_REPLAYS))
    _last_logged: int | None = None
    _readings: int = 0
    _offered: dict[str, int] = field(default_factory=dict)
    _missing: int = 0
    _clock: CumulativeSum = field(
        default_factory=lambda: CumulativeSum(slack=0.06, threshold=0.5, most=0.15)
    )
    _usual_clock: Baseline = field(default_factory=lambda: Baseline(USUAL, 1 / 500, 0.05))
    _share_of_siblings: Baseline = field(default_factory=lambda: Baseline(USUAL, 1 / 500, 0.05))
    _hardware_throttle: RecentShare = field(default_factory=lambda: RecentShare(12, 10))
    _thermal_throttle: RecentShare = field(default_factory=lambda: RecentShare(30, 27))
    _lanes: float = 0.0
    _narrow: int = 0
    _power_limit: Baseline = field(default_factory=lambda: Baseline(5, 0.0, 0.0))
    _limited: int = 0

    @property
    def busy(self) -> bool:
        return (self.signals.utilization or 0.0) >= BUSY_PERCENT

    def take(self, signals: DeviceSignals) -> None:
        """Record new readings; ``symptoms`` then judges them beside those of the siblings."""
        self.signals = replace(signals, xids=self._new_errors(signals))
        if self.busy:
            self.readings_since_busy = 0
        elif self.readings_since_busy is not None:
            self.readings_since_busy += 1

    @property
    def warm_lately(self) -> bool:
        since = self.readings_since_busy
        return self.warm and since is not None and since <= LATELY

    def judges(self, kind: FindingKind) -> bool:
        """Whether the newest readings tell of this kind."""
        if kind is FindingKind.SLOW_CLOCK:
            return self._comparable_clock() is not None
        return self.busy or kind not in UNDER_LOAD

    def _new_errors(self, signals: DeviceSignals) -> tuple[int, ...]:
        """Return the codes of the errors that were logged since the last readings.

        The log tells of those before the first readings only by its clock.
        """
        logged, before = signals.logged_xids, self._last_logged
        newest = max((number for number, _ in logged), default=None)
        self._last_logged = newest if newest is not None else before if before is not None else -1
        if newest is None or before is None:
            return signals.xids
        # The numbers begin again when the node is started.
        since = before if newest >= before else -1
        return tuple(code for number, code in logged if number > since)

    def symptoms(self, siblings: Sequence[DeviceWatch]) -> Iterator[Symptom]:
        """Judge the newest readings; call it once for each ``take``."""
        yield from self._errors()
        yield from self._absent_readings(siblings)
        yield from self._throttling()
        yield from self._slow_clock(siblings)
        yield from self._power(siblings)
        yield from self._link(siblings)
        yield from self._counters(siblings)

    def _errors(self) -> Iterator[Symptom]:
        errors = hardware_errors(self.signals.xids)
        if errors:
            yield FindingKind.XID, Consequence.FAULT, f"The kernel log reports {errors}."

    def _absent_readings(self, siblings: Sequence[DeviceWatch]) -> Iterator[Symptom]:
        """Find readings that a device has stopped to offer, while its siblings still do."""
        present = {name for name in _READINGS if getattr(self.signals, name) is not None}
        usual = {name for name, times in self._offered.items() if times >= OFTEN * self._readings}
        gone = sorted(usual - present) if self._readings >= USUAL else []
        # A new driver, or a lost permission, takes a reading from all devices.
        if siblings:
            gone = [name for name in gone if any(_has(each, name) for each in siblings)]
        self._missing = self._missing + 1 if len(gone) >= LEAST_MISSING else 0
        if not gone:
            self._readings += 1
            for name in present:
                self._offered[name] = self._offered.get(name, 0) + 1
        if self._missing >= CONSECUTIVE:
            names = ", ".join(name.replace("_", " ") for name in gone)
            yield (
                FindingKind.MISSING_READINGS,
                Consequence.SUSPECT,
                f"The device no longer reports: {names}.",
            )

    def _throttling(self) -> Iterator[Symptom]:
        reasons = frozenset(self.signals.throttled or ())
        throttles = False
        slowed = reasons & (_HARDWARE | {ThrottleReason.THERMAL})
        if self.busy:
            throttles = self._hardware_throttle.add(bool(reasons & _HARDWARE))
            throttles |= self._thermal_throttle.add(ThrottleReason.THERMAL in reasons)
            mostly = self._hardware_throttle.mostly or self._thermal_throttle.mostly
            self.warm = bool(slowed) and mostly
        if self.busy and throttles and slowed:
            degrees = self.signals.temperature_celsius
            at = "" if degrees is None else f" at {degrees:.0f} °C"
            yield (
                FindingKind.THROTTLED,
                Consequence.SUSPECT,
                f"Its clock is lowered by {', '.join(sorted(slowed))}{at}, "
                "in nearly all of the last readings under load.",
            )

    def _slow_clock(self, siblings: Sequence[DeviceWatch]) -> Iterator[Symptom]:
        """Find a clock that is lower than those of the siblings, or than its own before."""
        clock = self._comparable_clock()
        if clock is None:
            return
        others = median_of((c for each in siblings if (c := each._comparable_clock())), least=2)
        usual = self._usual_clock if others is None else self._share_of_siblings
        now = math.log(clock / others) if others is not None else math.log(clock)
        expected = usual.value
        if others is not None:
            expected = max(-OWN_SHARE, min(OWN_SHARE, expected or 0.0))
        slow = expected is not None and self._clock.add(expected - now)
        if self._clock.total == 0.0:
            usual.add(now)
        if slow and expected is not None:
            against = (
                f"{others:.0f} MHz of its siblings under load"
                if others is not None
                else f"{math.exp(expected):.0f} MHz before"
            )
            yield (
                FindingKind.SLOW_CLOCK,
                Consequence.SUSPECT,
                f"Its clock under load is {clock:.0f} MHz, against {against}.",
            )

    def _comparable_clock(self) -> float | None:
        if self.signals.throttled is None and "throttled" in self._offered:
            return None  # it may be at its power limit
        reasons = frozenset(self.signals.throttled or ())
        clock = self.signals.clock_mhz
        return clock if self.busy and clock and clock > 0 and not reasons & _EXPLAINED else None

    def _power(self, siblings: Sequence[DeviceWatch]) -> Iterator[Symptom]:
        """Find a lower power limit than before, unless the siblings have it too."""
        limit, usual = self.signals.power_limit_watts, self._power_limit.value
        if limit is None:
            return
        self._power_limit.add(limit)
        others = median_of(
            (w for each in siblings if (w := each.signals.power_limit_watts)), least=1
        )
        lost = usual is not None and limit < (1 - LOST_SHARE) * usual
        shared = others is not None and others < (1 - LOST_SHARE) * (usual or 0.0)
        self._limited = self._limited + 1 if lost and not shared else 0
        if self._limited >= CONSECUTIVE:
            yield (
                FindingKind.POWER_LIMIT,
                Consequence.SUSPECT,
                f"Its power limit is {limit:.0f} W, against {usual:.0f} W before.",
            )

    def _link(self, siblings: Sequence[DeviceWatch]) -> Iterator[Symptom]:
        """Find a link with fewer lanes than before, or than those of the siblings."""
        lanes = self.signals.pcie_lanes
        if lanes is None or not self.busy:
            return
        self._lanes = max(self._lanes, lanes)
        others = median_of((n for each in siblings if (n := each.signals.pcie_lanes)), least=2)
        usual = max(self._lanes, others or 0.0)
        self._narrow = self._narrow + 1 if lanes < usual else 0
        if self._narrow >= CONSECUTIVE:
            yield (
                FindingKind.NARROW_LINK,
                Consequence.SUSPECT,
                f"Its link to the host has {lanes:.0f} lanes, usual are {usual:.0f}.",
            )

    def _counters(self, siblings: Sequence[DeviceWatch]) -> Iterator[Symptom]:
        errors = self.corrected.add(self.signals.corrected_errors)
        replays = self.replays.add(self.signals.pcie_replays)
        if self.corrected.conspicuous([each.corrected for each in siblings]):
            yield (
                FindingKind.MEMORY_ERRORS,
                Consequence.SUSPECT,
                f"{errors:.0f} corrected memory errors in the last readings, far more than before "
                "and than its siblings.",
            )
        if self.replays.conspicuous([each.replays for each in siblings]):
            yield (
                FindingKind.LINK_ERRORS,
                Consequence.SUSPECT,
                f"{replays:.0f} repeated transfers on its link in the last readings, far more than "
                "before and than its siblings.",
            )


def _has(watch: DeviceWatch, name: str) -> bool:
    return getattr(watch.signals, name) is not None
