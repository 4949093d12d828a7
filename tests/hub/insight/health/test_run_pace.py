"""A device is doubted when the runs of several users are slow on it, and on no other."""

from __future__ import annotations

import math

from carrel.hub.insight.health.run_pace import RunPace


def doubted(pace: RunPace, device: str, ratio: float, runs: int, owners: int = 3) -> bool:
    found = [
        pace.add(device, f"user{number % owners}", 100 * ratio, 100.0) for number in range(runs)
    ]
    return any(found)


def test_a_device_on_which_runs_of_several_users_are_slow_is_doubted_once() -> None:
    pace = RunPace()
    assert not doubted(pace, "B", 1.0, 10)
    assert doubted(pace, "A", 1.4, 4)
    assert not doubted(pace, "A", 1.4, 2)


def test_predictions_that_are_wrong_everywhere_doubt_no_device() -> None:
    pace = RunPace()
    assert not any(doubted(pace, name, 3.0, 4) for name in "ABCABC")


def test_the_runs_of_one_user_doubt_no_device() -> None:
    pace = RunPace()
    doubted(pace, "B", 1.0, 10)
    assert not doubted(pace, "A", 2.0, 20, owners=1)


def test_impossible_times_are_left_out() -> None:
    pace = RunPace()
    for seconds in (0.0, -3.0, math.nan, math.inf):
        assert not pace.add("A", "ann", seconds, 100.0)
        assert not pace.add("A", "ann", 100.0, seconds)


def test_slow_runs_that_waited_on_their_node_are_told_of_and_doubt_no_device() -> None:
    pace = RunPace()
    doubted(pace, "B", 1.0, 10)
    why = "its threads waited for a core for 60 % of their time"
    assert not any(pace.add("A", f"user{n % 3}", 200.0, 100.0, why) for n in range(8))
    assert pace.evidence("A") == (
        "8 slow runs on it waited for something else than the device; in the last one "
        "its threads waited for a core for 60 % of their time."
    )
    assert doubted(pace, "A", 1.5, 4)
    assert pace.evidence("A").startswith(
        "Of the last 12 runs on it, 4 took longer than on other devices: 1.5 times, at the median."
    )
    assert not pace.evidence("B")


def test_a_user_whose_runs_are_slow_on_three_devices_doubts_none() -> None:
    pace = RunPace()
    doubted(pace, "D", 1.0, 10)
    for device in "ABC":
        assert not pace.add(device, "ann", 150.0, 100.0)
    assert not any(pace.evidence(device) for device in "ABC")
    assert not any(pace.add("A", name, 150.0, 100.0) for name in ("ann", "bob", "bob", "bob"))
    assert pace.add("A", "cid", 150.0, 100.0), "two others doubt it"
    pace.add("D", "ann", 100.0, 100.0)
    assert pace.evidence("B"), "the code of a user is good again after a run in time"
