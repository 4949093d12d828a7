"""A node with eight GPUs: what their readings are in order, and what each kind of fault does.

The readings of healthy devices contain what confuses detectors: jobs at the power limit, clocks
that users choose, dips between epochs, short thermal slowdowns, a hot hour, a driver that is loaded
again, single readings that fail, and errors that programs cause by themselves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final
from weakref import WeakKeyDictionary

from carrel.hub.interfaces.devices import DeviceSignals, ThrottleReason

SECONDS: Final = 10.0
"""Between two readings."""
DEVICES: Final = 8
_HOUR: Final = 3600 / SECONDS
_PROGRAM_XIDS: Final = (13, 31, 43, 45)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One device at one moment.

    Attributes:
        lost, unopened, retired: what its driver reports.
        uncorrected: memory errors.
    """

    signals: DeviceSignals
    lost: bool = False
    unopened: bool = False
    remap_failed: bool = False
    remap_pending: bool = False
    uncorrected: int = 0


@dataclass(slots=True)
class _Job:
    """What runs on a device."""

    until: int
    utilization: float
    clock: float
    capped: float
    chosen: bool
    watts: float


@dataclass(slots=True)
class Gpu:
    """One device in order."""

    rng: random.Random
    job: _Job | None = None
    replays: float = 0.0
    corrected: float = 0.0
    warm_until: int = 0
    silent_until: int = 0
    offset: float = 0.0
    replay_rate: float = 0.0
    corrected_rate: float = 0.0
    always_busy: bool = False

    def __post_init__(self) -> None:
        self.offset = self.rng.gauss(0, 0.006)
        self.replay_rate = self.rng.choice([0, 0, 0.2, 2]) / _HOUR
        self.corrected_rate = self.rng.choice([0, 0, 0.1, 1]) / _HOUR

    def read(self, tick: int) -> DeviceSignals:
        rng = self.rng
        if self.job is None or tick >= self.job.until:
            self.job = self._next_job(tick)
        self.replays += rng.random() < self.replay_rate
        self.replays += 10 * (rng.random() < 0.01 / _HOUR)
        self.corrected += rng.random() < self.corrected_rate
        if rng.random() < 0.2 / _HOUR:
            self.warm_until = tick + rng.randint(1, 4)
        if rng.random() < 0.003 / _HOUR:
            self.silent_until = tick + rng.randint(1, 2)
        if tick < self.silent_until:
            return DeviceSignals(utilization=None)
        signals = self._working(tick) if self.job.utilization else self._idle()
        for name in ("power_watts", "temperature_celsius", "pcie_replays"):
            if rng.random() < 1e-4:
                signals = replace(signals, **{name: None})  # type: ignore[arg-type]
        return signals

    def _next_job(self, tick: int) -> _Job:
        rng = self.rng
        length = int(rng.expovariate(1 / (1.5 * _HOUR))) + 6
        idle = not self.always_busy and rng.random() < 0.35
        return _Job(
            until=tick + (100_000 if self.always_busy else length),
            utilization=0.0 if idle else rng.uniform(55, 100),
            clock=1980 * (1 - rng.uniform(0, 0.03)),
            capped=rng.uniform(0.7, 1.0) if rng.random() < 0.4 and not self.always_busy else 0.0,
            chosen=rng.random() < 0.03 and not self.always_busy,
            watts=rng.uniform(250, 690),
        )

    def _working(self, tick: int) -> DeviceSignals:
        rng, job = self.rng, self.job
        assert job is not None
        dip = rng.random() < 0.05
        utilization = rng.uniform(0, 40) if dip else min(100.0, job.utilization + rng.gauss(0, 4))
        clock = job.clock * (1 + self.offset + rng.gauss(0, 0.008))
        watts, reasons = job.watts + rng.gauss(0, 15), list[ThrottleReason]()
        if rng.random() < job.capped:
            clock, watts = clock * rng.uniform(0.68, 0.95), 700.0
            reasons.append(ThrottleReason.POWER_CAP)
        if job.chosen:
            clock = min(clock, 1410.0)
            reasons.append(ThrottleReason.CHOSEN)
        if tick < self.warm_until:
            clock *= 0.93
            reasons.append(ThrottleReason.THERMAL)
        return DeviceSignals(
            utilization=max(0.0, utilization),
            clock_mhz=round(clock),
            throttled=tuple(reasons),
            temperature_celsius=round(38 + watts / 18 + rng.gauss(0, 1.5)),
            power_watts=round(watts, 1),
            power_limit_watts=700.0,
            pcie_lanes=16.0,
            pcie_replays=self.replays,
            corrected_errors=self.corrected,
            xids=(rng.choice(_PROGRAM_XIDS),) if rng.random() < 0.02 / _HOUR else (),
        )

    def _idle(self) -> DeviceSignals:
        return DeviceSignals(
            utilization=0.0,
            clock_mhz=345.0,
            throttled=(),
            temperature_celsius=round(33 + self.rng.gauss(0, 1)),
            power_watts=round(75 + self.rng.gauss(0, 2), 1),
            power_limit_watts=700.0,
            pcie_lanes=8.0 if self.rng.random() < 0.02 else 16.0,
            pcie_replays=self.replays,
            corrected_errors=self.corrected,
        )


def repeatable(seed: str) -> random.Random:
    """Return a source of the same numbers in each run."""
    return random.Random(seed)  # noqa: S311  # no secret


Change = Callable[[Reading, int, random.Random], Reading]
"""What a fault makes of a reading: the reading, and the number of readings since it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of fault.

    Attributes:
        within: seconds within which it must be found.
    """

    name: str
    within: float
    change: Change


def _signals(**changes: object) -> Change:
    def change(reading: Reading, since: int, rng: random.Random) -> Reading:
        return replace(reading, signals=replace(reading.signals, **changes))  # type: ignore[arg-type]

    return change


def _clock(low: float, high: float, *reasons: ThrottleReason, duty: float = 1.0) -> Change:
    """Lower the clock to a share of it, which is drawn once for a fault."""
    shares = WeakKeyDictionary[random.Random, float]()

    def change(reading: Reading, since: int, rng: random.Random) -> Reading:
        share = shares.setdefault(rng, rng.uniform(low, high))
        now, clock = reading.signals, reading.signals.clock_mhz
        if clock is None or rng.random() > duty:
            return reading
        throttled = (*(now.throttled or ()), *reasons)
        return replace(
            reading, signals=replace(now, clock_mhz=round(clock * share), throttled=throttled)
        )

    return change


def _grown(name: str, low: float, high: float) -> Change:
    """Let a counter grow by some in each reading."""
    rates = WeakKeyDictionary[random.Random, float]()

    def change(reading: Reading, since: int, rng: random.Random) -> Reading:
        rate = rates.setdefault(rng, rng.uniform(low, high))
        value = (getattr(reading.signals, name) or 0.0) + round(rate * (since + 1))
        return replace(reading, signals=replace(reading.signals, **{name: value}))

    return change


def _falling(most: float, over: int) -> Change:
    """Lower the clock further with each reading, by at most a share of it."""

    def change(reading: Reading, since: int, rng: random.Random) -> Reading:
        now, clock = reading.signals, reading.signals.clock_mhz
        if clock is None:
            return reading
        share = 1 - most * min(1.0, (since + 1) / over)
        return replace(reading, signals=replace(now, clock_mhz=round(clock * share)))

    return change


def _silent(reading: Reading, since: int, rng: random.Random) -> Reading:
    return replace(reading, signals=DeviceSignals(utilization=reading.signals.utilization))


def _xid(reading: Reading, since: int, rng: random.Random) -> Reading:
    code = rng.choice((48, 74, 79, 95, 119)) if since == 0 else 0
    return _signals(xids=(code,))(reading, since, rng) if code else reading


HARD: Final = 60.0
SOFT: Final = 600.0
FAULTS: Final = (
    Fault(name="lost from the bus", within=HARD, change=lambda r, s, g: replace(r, lost=True)),
    Fault(name="cannot be opened", within=HARD, change=lambda r, s, g: replace(r, unopened=True)),
    Fault(name="uncorrected errors", within=HARD, change=lambda r, s, g: replace(r, uncorrected=2)),
    Fault(
        name="rows not remapped", within=HARD, change=lambda r, s, g: replace(r, remap_failed=True)
    ),
    Fault(name="hardware Xid", within=HARD, change=_xid),
    Fault(
        name="readings missing",
        within=HARD,
        change=_signals(
            power_watts=None, temperature_celsius=None, pcie_replays=None, throttled=None
        ),
    ),
    Fault(
        name="hot device",
        within=SOFT,
        change=_clock(0.6, 0.85, ThrottleReason.HARDWARE_THERMAL, ThrottleReason.HARDWARE),
    ),
    Fault(
        name="power brake, on and off",
        within=SOFT,
        change=_clock(0.5, 0.7, ThrottleReason.POWER_BRAKE, ThrottleReason.HARDWARE, duty=0.92),
    ),
    Fault(name="clock 10 % lower", within=SOFT, change=_clock(0.9, 0.9)),
    Fault(name="power limit lower", within=SOFT, change=_signals(power_limit_watts=350.0)),
    Fault(name="narrow link", within=SOFT, change=_signals(pcie_lanes=4.0)),
    Fault(name="link errors", within=SOFT, change=_grown("pcie_replays", 2, 40)),
    Fault(name="memory errors", within=SOFT, change=_grown("corrected_errors", 1, 20)),
    Fault(
        name="rows to be remapped",
        within=HARD,
        change=lambda r, s, g: replace(r, remap_pending=True),
    ),
    Fault(name="all readings missing", within=HARD, change=_silent),
    Fault(
        name="power missing",
        within=HARD,
        change=_signals(power_watts=None, power_limit_watts=None),
    ),
    Fault(name="thermal slowdown", within=SOFT, change=_clock(0.8, 0.95, ThrottleReason.THERMAL)),
    Fault(name="clock falls in 5 minutes", within=SOFT, change=_falling(0.2, 30)),
    Fault(
        name="clock lower in every second reading",
        within=SOFT,
        change=_clock(0.75, 0.85, duty=0.5),
    ),
    Fault(name="half of the link", within=SOFT, change=_signals(pcie_lanes=8.0)),
)


@dataclass(slots=True)
class SimulatedNode:
    """Eight devices; one of them has a fault from a moment on.

    Attributes:
        sick: index of the device with the fault, which is always busy.
        begins: number of the first reading with the fault.
    """

    seed: int
    fault: Fault | None = None
    sick: int = -1
    begins: int = 0
    gpus: list[Gpu] = field(default_factory=list)
    _rng: random.Random = field(default_factory=random.Random)
    _hot: range = range(0)
    _reloaded: range = range(0)

    def __post_init__(self) -> None:
        self._rng = repeatable(f"fault/{self.seed}")
        self.gpus = [Gpu(repeatable(f"{self.seed}/{index}")) for index in range(DEVICES)]
        week = int(168 * _HOUR)
        hot, reloaded = self._rng.randrange(week), self._rng.randrange(week)
        self._hot, self._reloaded = range(hot, hot + int(_HOUR)), range(reloaded, reloaded + 30)
        if self.fault is not None:
            self.sick = self._rng.randrange(DEVICES)
            self.gpus[self.sick].always_busy = True
            self._hot = self._reloaded = range(0)

    def readings(self, tick: int) -> Iterator[Reading]:
        """Yield the readings of all devices."""
        if tick == self._reloaded.start and self._reloaded:
            for gpu in self.gpus:
                gpu.replays = gpu.corrected = 0.0
        for index, gpu in enumerate(self.gpus):
            signals = gpu.read(tick)
            if tick in self._hot and signals.utilization:
                reasons = (*(signals.throttled or ()), ThrottleReason.THERMAL)
                signals = replace(signals, throttled=reasons)
            if tick in self._reloaded:
                signals = replace(signals, power_watts=None, pcie_replays=None, throttled=None)
            reading = Reading(signals=signals)
            if self.fault is not None and index == self.sick and tick >= self.begins:
                reading = self.fault.change(reading, tick - self.begins, self._rng)
            yield reading
