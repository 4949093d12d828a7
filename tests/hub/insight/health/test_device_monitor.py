"""Faults show in the readings of a device before, or without, an error of its driver."""

from __future__ import annotations

import math

import pytest

from carrel.hub.insight.health.device_watch import LATELY
from carrel.hub.insight.health.findings import Consequence, FindingKind
from carrel.hub.interfaces.devices import NO_SIGNALS, DeviceSignals, ThrottleReason

from .readings import GOOD, Node, good

SUSPECT = Consequence.SUSPECT


@pytest.mark.parametrize(
    ("signals", "readings", "kind", "words"),
    [
        (good(xids=(31, 79)), 1, FindingKind.XID, "Xid 79 (the device has fallen off the bus)"),
        (NO_SIGNALS, 3, FindingKind.MISSING_READINGS, "no longer reports: clock mhz"),
        (
            good(throttled=(ThrottleReason.HARDWARE_THERMAL,)),
            10,
            FindingKind.THROTTLED,
            "hardware thermal slowdown at 65 °C",
        ),
        (good(throttled=(ThrottleReason.THERMAL,)), 27, FindingKind.THROTTLED, "thermal"),
        (good(clock_mhz=1530.0), 12, FindingKind.SLOW_CLOCK, "1530 MHz, against 1700 MHz of its"),
        (good(power_limit_watts=200.0), 3, FindingKind.POWER_LIMIT, "200 W, against 400 W"),
        (good(pcie_lanes=8.0), 3, FindingKind.NARROW_LINK, "has 8 lanes, usual are 16"),
        (good(pcie_replays=103.0), 1, FindingKind.LINK_ERRORS, "100 repeated transfers"),
        (good(corrected_errors=41.0), 1, FindingKind.MEMORY_ERRORS, "40 corrected memory errors"),
    ],
)
def test_a_fault_is_found_with_its_evidence_and_told_once(
    signals: DeviceSignals, readings: int, kind: FindingKind, words: str
) -> None:
    node = Node()
    (found,) = node.read({1: signals}, times=readings)
    assert (found.target, found.kind) == ("D1", kind)
    assert found.consequence is (Consequence.FAULT if kind is FindingKind.XID else SUSPECT)
    assert words in found.evidence
    assert node.read({1: signals}, times=20) == []


def test_a_device_alone_is_judged_by_its_own_past() -> None:
    node = Node(size=1)
    (found,) = node.read({0: good(clock_mhz=1530.0)}, times=12)
    assert found.evidence == "Its clock under load is 1530 MHz, against 1700 MHz before."


def test_a_device_that_was_always_slower_than_its_siblings_is_found() -> None:
    node = Node(usual=0)
    (found,) = node.read({2: good(clock_mhz=1450.0)}, times=12)
    assert (found.target, found.kind) == ("D2", FindingKind.SLOW_CLOCK)


@pytest.mark.parametrize(
    "signals",
    [
        good(xids=(13, 31, 43, 45)),
        good(throttled=(ThrottleReason.POWER_CAP,), clock_mhz=1200.0),
        good(throttled=(ThrottleReason.CHOSEN,), clock_mhz=900.0),
        good(utilization=3.0, clock_mhz=210.0, pcie_lanes=4.0, power_watts=40.0),
        good(utilization=None, clock_mhz=210.0),
        good(throttled=None, clock_mhz=1200.0),
        good(clock_mhz=1660.0),
        good(power_watts=None),
        good(pcie_replays=0.0, corrected_errors=0.0),
        good(utilization=math.nan),
        good(corrected_errors=math.inf, clock_mhz=-5.0),
    ],
    ids=[
        "errors of programs",
        "full power",
        "clock chosen by a user",
        "idle",
        "utilization unknown",
        "reasons for the clock unknown",
        "as different as good devices are",
        "one reading fails",
        "the driver was loaded again",
        "not a number",
        "impossible values",
    ],
)
def test_a_device_in_order_is_left_alone(signals: DeviceSignals) -> None:
    assert Node().read({1: signals}, times=100) == []


def test_a_glitch_is_no_finding() -> None:
    node = Node()
    for signals in (NO_SIGNALS, good(clock_mhz=300.0), good(pcie_lanes=8.0), None):
        assert node.read({1: signals}, times=2) == []
        assert node.read({}, times=20) == []


def test_readings_that_a_new_driver_offers_for_no_device_are_not_missed() -> None:
    fewer = good(power_watts=None, pcie_replays=None, temperature_celsius=None)
    assert Node().read(dict.fromkeys(range(4), fewer), times=50) == []


def test_heat_on_all_devices_is_a_matter_of_the_node() -> None:
    hot = good(throttled=(ThrottleReason.HARDWARE_THERMAL,), clock_mhz=1400.0)
    (found,) = Node().read(dict.fromkeys(range(4), hot), times=40)
    assert (found.target, found.kind, found.consequence) == (
        "n1",
        FindingKind.HOT_NODE,
        Consequence.NOTICE,
    )
    assert found.evidence.startswith("4 of 4 devices with load on n1 in the last half")


HOT = good(throttled=(ThrottleReason.THERMAL,))
IDLE = good(utilization=0.0, clock_mhz=300.0)


def test_a_device_that_was_hot_a_while_ago_shows_that_its_node_is() -> None:
    node = Node()
    assert node.read({0: HOT, 1: IDLE, 2: IDLE, 3: IDLE}, times=20) == []
    found = node.read({0: HOT, 1: HOT, 2: IDLE, 3: IDLE}, times=40)
    assert [(each.target, each.kind) for each in found] == [
        ("D0", FindingKind.THROTTLED),  # the other one may have a short slow-down
        ("n1", FindingKind.HOT_NODE),
    ]
    only_one = {0: IDLE, 1: HOT, 2: IDLE, 3: IDLE}
    assert node.read(only_one, times=60) == []
    (last,) = node.read(only_one, times=LATELY)
    assert (last.target, last.kind) == ("D1", FindingKind.THROTTLED), "too long ago"


def test_a_finding_under_load_is_told_once_however_often_the_load_pauses() -> None:
    node = Node()
    for signals in (HOT, good(pcie_lanes=8.0), good(clock_mhz=1400.0)):
        assert len(node.read({1: signals}, times=40)) == 1
        for _ in range(5):
            assert node.read({1: IDLE}, times=1) == []
            assert node.read({1: signals}, times=40) == []
        node.monitor.release("D1")
        assert len(node.read({1: signals}, times=1)) == 1, "it is back in service"
        assert node.read({}, times=100) == []


def test_a_device_that_its_driver_no_longer_lists_is_noticed() -> None:
    node = Node()
    (found,) = node.read({}, times=5, absent=frozenset({3}))
    assert (found.target, found.kind, found.consequence) == (
        "D3",
        FindingKind.ABSENT,
        Consequence.NOTICE,
    )
    assert node.read({}, times=5) == []


def test_without_any_readings_nothing_is_said() -> None:
    node = Node(usual=0)
    assert node.read(dict.fromkeys(range(4)), times=50) == []
    assert node.read({}, times=50, absent=frozenset(range(4))) == []


def test_a_fault_that_comes_back_is_told_again() -> None:
    node = Node()
    assert node.read({1: good(pcie_lanes=8.0)}, times=5)
    assert node.read({1: GOOD}, times=5) == []
    assert node.read({1: good(pcie_lanes=8.0)}, times=5)


def test_a_driver_without_an_answer_accuses_no_device() -> None:
    node = Node()
    assert node.read({1: None}, times=50) == []
    assert node.read({}, times=20) == []


def test_a_finding_lasts_while_its_device_has_no_readings() -> None:
    node = Node()
    narrow = good(pcie_lanes=8.0)
    assert node.read({1: narrow}, times=5)
    assert node.read({1: None}, times=5) == []
    assert node.read({}, times=5, absent=frozenset({1}))[0].kind is FindingKind.ABSENT
    assert node.read({1: narrow}, times=5) == []


def test_a_new_device_alone_has_no_usual_growth_of_its_counters() -> None:
    node = Node(size=1, usual=0)
    found = [
        each
        for number in range(50)
        for each in node.read({0: good(corrected_errors=10.0 * number)})
    ]
    assert found == []


def test_errors_in_the_log_are_found_by_their_number_whatever_its_clock_says() -> None:
    old = ((5, 48),)
    node = Node(usual=0)
    found = node.read({1: good(logged_xids=old)}, times=3)
    assert not found, "they may be from before a repair"
    found = node.read({1: good(logged_xids=(*old, (9, 79)))}, times=3)
    assert [each.kind for each in found] == [FindingKind.XID]
    found = node.read({1: good(logged_xids=((7, 74),))})
    assert ["Xid 74" in each.evidence for each in found] == [True], "the node was started again"
    assert [each.target for each in node.read({2: good(logged_xids=((2, 48),))})] == ["D2"]


def test_errors_before_the_first_readings_are_found_by_the_clock_of_the_log() -> None:
    node = Node(usual=0)
    found = node.read({1: good(xids=(48,), logged_xids=((3, 79), (5, 48)))}, times=3)
    assert ["Xid 48" in each.evidence for each in found] == [True]
