"""Faults of devices: how many are found, how soon, and what is found where there is none.

A fault begins on one of eight devices after a quarter of an hour, under load, and is shown through
NVML. Healthy weeks are judged beside, with the same readings as values. All methods are told what
the driver and the kernel log say. For the rest the peers are fixed thresholds as monitoring rules
have them, and scikit-learn's IsolationForest on what one reading says, trained on healthy hours of
other nodes. Both must see it three times in a row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from carrel.hub.insight.health.device_monitor import DeviceMonitor
from carrel.hub.insight.health.findings import FindingKind
from carrel.hub.insight.health.xids import hardware_errors
from carrel.hub.interfaces.devices import NO_SIGNALS, DeviceSignals, ThrottleReason
from carrel.hub.scheduling.model.snapshot import Device, Health

from .. import report
from .fake_driver import fake_driver
from .jobs import upper_bound
from .simulated_node import DEVICES, FAULTS, HARD, SECONDS, Fault, SimulatedNode

MODULE: Final = "tests.benchmarks.anomaly"
BEGINS: Final = 90
THROUGH_LIBRARY: Final = 10
"""Readings before the fault that go through the library, as do all after it."""
WEEK: Final = int(7 * 86_400 / SECONDS)
TRAINING: Final = 4_000
FIRST_TRAINING_SEED: Final = 90_000
FIRST_HEALTHY_SEED: Final = 50_000
IN_A_ROW: Final = 3
QUERIES: Final = 9

Look = tuple[tuple[Device, ...], Mapping[str, DeviceSignals]]
Alarms = list[list[tuple[str, str]]]
"""For each look, the devices that a method complains of now, and why."""


@dataclass(slots=True)
class DeviceVerdicts:
    """What a method found."""

    right: int = 0
    late: dict[str, int] = field(default_factory=dict)
    false: int = 0
    delays: dict[str, list[float]] = field(default_factory=dict)

    @property
    def faults(self) -> int:
        return self.right + sum(self.late.values())

    @property
    def missing(self) -> float:
        """Most percent of the faults that are not found in time, at a confidence of 95 %."""
        return 100 * upper_bound(sum(self.late.values()), self.faults)

    @property
    def imprecision(self) -> float:
        """Most percent of the alarms that are false, at a confidence of 95 %."""
        return 100 * upper_bound(self.false, self.false + self.right)

    def add(self, fault: Fault, found: float | None, false: int) -> None:
        self.false += false
        self.delays.setdefault(fault.name, [])
        if found is not None and found <= fault.within:
            self.right += 1
            self.delays[fault.name].append(found)
        else:
            self.late[fault.name] = self.late.get(fault.name, 0) + 1


def ours(looks: Sequence[Look]) -> Alarms:
    """Judge looks as the service does: what the driver says, and what the monitor finds."""
    monitor = DeviceMonitor()
    found: Alarms = [
        [
            (finding.target, finding.kind.value)
            for finding in monitor.observe(devices, signals)
            if finding.kind is not FindingKind.HOT_NODE
        ]
        for devices, signals in looks
    ]
    return [[*now, *hard] for now, hard in zip(found, told(looks), strict=True)]


def told(looks: Sequence[Look]) -> Alarms:
    """Return what the driver and the kernel log say, and the devices that are no longer listed."""
    alarms: Alarms = []
    known, before = set[tuple[str, str]](), set[str]()
    for devices, signals in looks:
        present = {device.id for device in devices}
        now = {(name, "absent") for name in before - present}
        now |= {(device.id, "driver") for device in devices if device.health is not Health.OK}
        now |= {(name, "xid") for name, each in signals.items() if hardware_errors(each.xids)}
        alarms.append(sorted(now - known))
        known, before = known | now, before | present
    return alarms


def thresholds(before: DeviceSignals, now: DeviceSignals) -> bool:
    """Whether a reading is beyond the limits that monitoring rules usually have."""
    busy = (now.utilization or 0) >= 50
    explained = set(now.throttled or ()) & {ThrottleReason.CHOSEN, ThrottleReason.POWER_CAP}
    reasons = set(now.throttled or ()) - explained
    return bool(
        (now.utilization is not None and now.power_watts is None)
        or reasons
        or (now.temperature_celsius or 0) > 90
        or (busy and not explained and now.clock_mhz is not None and now.clock_mhz < 0.92 * 1980)
        or (now.power_limit_watts is not None and now.power_limit_watts < 0.9 * 700)
        or (busy and now.pcie_lanes is not None and now.pcie_lanes < 16)
        or _growth(before.pcie_replays, now.pcie_replays) >= 5
        or _growth(before.corrected_errors, now.corrected_errors) >= 2
    )


def _growth(before: float | None, now: float | None) -> float:
    return 0.0 if before is None or now is None else max(0.0, now - before)


def features(before: DeviceSignals, now: DeviceSignals) -> list[float]:
    """Return what one reading, and the growth since the one before, say."""
    values = [
        now.utilization,
        now.clock_mhz,
        now.temperature_celsius,
        now.power_watts,
        now.power_limit_watts,
        now.pcie_lanes,
    ]
    return [
        *(-1.0 if value is None else value for value in values),
        _growth(before.pcie_replays, now.pcie_replays),
        _growth(before.corrected_errors, now.corrected_errors),
        float(len(now.throttled or ())),
        float(len(now.xids)),
        float(sum(value is None for value in values)),
    ]


def beyond_thresholds(looks: Sequence[Look]) -> Alarms:
    odd = []
    last: Mapping[str, DeviceSignals] = {}
    for devices, signals in looks:
        odd.append(
            {
                device.id
                for device in devices
                if thresholds(last.get(device.id, NO_SIGNALS), signals.get(device.id, NO_SIGNALS))
            }
        )
        last = {**last, **signals}
    return _in_a_row(looks, odd)


def forest() -> Callable[[Sequence[Look]], Alarms]:
    """Return an isolation forest that has learned healthy hours."""
    from sklearn.ensemble import IsolationForest  # noqa: PLC0415  # of an extra

    rows: list[list[float]] = []
    for seed in range(FIRST_TRAINING_SEED, FIRST_TRAINING_SEED + 3):
        _, found = _rows(list(looks_as_values(SimulatedNode(seed=seed), TRAINING // 3)))
        rows += found
    made = IsolationForest(n_estimators=100, contamination=0.01, random_state=0, n_jobs=1)
    made.fit(rows)

    def judge(looks: Sequence[Look]) -> Alarms:
        places, found = _rows(looks)
        odd: list[set[str]] = [set() for _ in looks]
        for (number, name), value in zip(places, made.predict(found), strict=True):
            if value < 0:
                odd[number].add(name)
        return _in_a_row(looks, odd)

    return judge


def _rows(looks: Sequence[Look]) -> tuple[list[tuple[int, str]], list[list[float]]]:
    places, rows = [], []
    last: Mapping[str, DeviceSignals] = {}
    for number, (_, signals) in enumerate(looks):
        for name, now in signals.items():
            places.append((number, name))
            rows.append(features(last.get(name, NO_SIGNALS), now))
        last = {**last, **signals}
    return places, rows


def _in_a_row(looks: Sequence[Look], odd: Sequence[set[str]]) -> Alarms:
    """Return what is told, and an alarm where a device has become odd three times in a row."""
    alarms: Alarms = []
    for number, now in enumerate(odd):
        lasting = set.intersection(now, *odd[max(0, number - IN_A_ROW + 1) : number])
        lasting = lasting if number >= IN_A_ROW - 1 else set()
        before = odd[number - IN_A_ROW] if number >= IN_A_ROW else set()
        alarms.append([(name, "odd") for name in lasting if name not in before])
    return [[*now, *hard] for now, hard in zip(alarms, told(looks), strict=True)]


def looks_as_values(node: SimulatedNode, ticks: int) -> Iterator[Look]:
    """Yield looks at a healthy node, without the library in between."""
    devices = tuple(
        Device(id=name_of(index), node="n1", index=index, model="GPU", memory_bytes=1)
        for index in range(DEVICES)
    )
    for tick in range(ticks):
        found = [reading.signals for reading in node.readings(tick)]
        yield devices, {device.id: now for device, now in zip(devices, found, strict=True)}


def name_of(index: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{index:012}"


def count(fault: Fault, sick: str, alarms: Alarms, verdicts: DeviceVerdicts) -> None:
    """Count the first alarm about the sick device, and those about others or before."""
    found, others = None, set()
    for number, now in enumerate(alarms):
        for name, why in now:
            if name != sick or number < BEGINS:
                others.add((name, why))
            elif found is None:
                found = SECONDS * (number - BEGINS + 1)
    verdicts.add(fault, found, len(others))


def rows(seeds: int, first: int) -> list[report.Row]:
    """Return the figures of all methods on faults, with seeds from ``first`` on."""
    driver = fake_driver()
    methods = {"ours": ours, "fixed thresholds": beyond_thresholds, "isolation forest": forest()}
    verdicts = {name: DeviceVerdicts() for name in methods}
    for fault in FAULTS:
        length = BEGINS + int(fault.within / SECONDS)
        for seed in range(seeds):
            number = first + 1000 * FAULTS.index(fault) + seed
            node = SimulatedNode(seed=number, fault=fault, begins=BEGINS)
            looks = list(looks_as_values(node, BEGINS - THROUGH_LIBRARY))
            looks += [
                driver.read(list(node.readings(tick)))[:2]
                for tick in range(BEGINS - THROUGH_LIBRARY, length)
            ]
            for name, judge in methods.items():
                count(fault, name_of(node.sick), judge(looks), verdicts[name])
        delays = verdicts["ours"].delays[fault.name]
        middle = f"{median(delays):.0f} s" if delays else "never"
        report.note(f"{fault.name}: {len(delays)} of {seeds} found, median after {middle}")
    for name, each in verdicts.items():
        report.note(
            f"{name}: {each.right} of {each.faults} faults found in time, {each.false} false "
            f"alarms; missed: {each.late}"
        )
    return _figures(_command("devices", seeds, first), verdicts)


def healthy_rows(seeds: int, first: int) -> list[report.Row]:
    """Return the figures of all methods on healthy weeks, one for each seed, and what it costs."""
    methods = {"ours": ours, "fixed thresholds": beyond_thresholds, "isolation forest": forest()}
    false, spent = dict.fromkeys(methods, 0), 0.0
    for week in range(seeds):
        node = SimulatedNode(seed=first + FIRST_HEALTHY_SEED + week)
        looks = list(looks_as_values(node, WEEK))
        for name, judge in methods.items():
            began = time.process_time()
            alarms = [alarm for now in judge(looks) for alarm in now]
            if name == "ours":
                spent += time.process_time() - began
                for alarm in alarms:
                    report.note(f"healthy week {week}: {alarm}")
            false[name] += len(alarms)
        report.note(f"healthy weeks until {week}: {false}")
    driver, some = fake_driver(), SimulatedNode(seed=first)
    reading = median(driver.read(list(some.readings(tick)))[2] for tick in range(QUERIES))
    query = median(driver.process_seconds(list(some.readings(0))) for _ in range(QUERIES))
    command = _command("healthy", seeds, first)

    def row(name: str, value: float, goal: report.Goal, unit: str = "") -> report.Row:
        return report.Row(
            name=f"devices: {name}", ours=value, goal=goal, unit=unit, command=command
        )

    load = (reading + spent / seeds / WEEK) / SECONDS / DEVICES
    bounds = {name: most_events(alarms) / seeds for name, alarms in false.items()}
    return [
        row("false alarms a node and week, 95 % bound", bounds["ours"], report.AtMost(limit=1)),
        *(
            row(f"the same, beside {name}", bounds["ours"], report.Beside(peer=bound))
            for name, bound in bounds.items()
            if name != "ours"
        ),
        row("CPU time of a device in a second", 1e6 * load, report.AtMost(limit=5_000), "µs"),
        *(
            row(
                f"the same with the driver's process, {number} of a node",
                1e6 * (load + query / SECONDS / number),
                report.AtMost(limit=5_000),
                "µs",
            )
            for number in (DEVICES, 1)
        ),
    ]


def most_events(count: int) -> float:
    """Return the upper end of the exact one-sided 95 % interval of a Poisson mean."""
    low, high = float(count), count + 10.0 * math.sqrt(count + 1)
    while high - low > 1e-6:
        mean = (low + high) / 2
        below = sum(
            math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count + 1)
        )
        low, high = (mean, high) if below > 0.05 else (low, mean)
    return high


def _command(part: str, seeds: int, first: int) -> str:
    return report.command_line(MODULE, part, "--seeds", str(seeds), "--first", str(first))


def _figures(command: str, verdicts: Mapping[str, DeviceVerdicts]) -> list[report.Row]:
    own = verdicts["ours"]
    hard = [
        delay
        for fault in FAULTS
        if fault.within == HARD
        for delay in own.delays.get(fault.name, [])
    ]
    slow = own.delays["clock 10 % lower"]

    def row(name: str, value: float | None, goal: report.Goal, unit: str) -> report.Row:
        return report.Row(
            name=f"devices: {name}", ours=value, goal=goal, unit=unit, command=command
        )

    found = [
        row("false alarms, 95 % bound", own.imprecision, report.AtMost(limit=5), "%"),
        row("faults missed or late, 95 % bound", own.missing, report.AtMost(limit=5), "%"),
        row("slowest hard fault", max(hard, default=None), report.AtMost(limit=60), "s"),
        row("slowest 10 % slow-down", max(slow, default=None), report.AtMost(limit=600), "s"),
    ]
    for name in ("fixed thresholds", "isolation forest"):
        for what, mine, theirs in (
            ("false alarms", own.imprecision, verdicts[name].imprecision),
            ("faults missed or late", own.missing, verdicts[name].missing),
        ):
            found.append(row(f"{what}, beside {name}", mine, report.Beside(peer=theirs), "%"))
    return found
