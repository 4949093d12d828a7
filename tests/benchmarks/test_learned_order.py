"""What ``tests.benchmarks.learned_order`` says of made-up figures; nothing is replayed."""

from __future__ import annotations

from functools import partial
from itertools import combinations

from carrel.hub.scheduling.model.learned_order import LearnedOrder

from .learned_order import SETS, WEIGHTS_FILE, Times, Use, gain_of, table

DAYS = range(20)
LONG: Times = {day: (200.0 + day, 2) for day in DAYS}
SHORT: Times = {day: (total / 2, count) for day, (total, count) in LONG.items()}


def test_a_gain_is_a_part_of_the_mean_completion_time_of_the_peer() -> None:
    gain = gain_of("a set", "qssf", [SHORT, SHORT], [LONG, LONG])
    assert (gain.gain, gain.low, gain.high) == (50, 50, 50)
    assert gain.fields()["beats"]
    assert "| a set | qssf | 52 s | 105 s | +50.0 % | +50.0 to +50.0 | yes |" in table([gain])


def test_an_equal_order_does_not_beat_its_peer() -> None:
    gain = gain_of("a set", "carrel", [LONG, LONG], [LONG, LONG])
    assert (gain.gain, gain.low, gain.high) == (0, 0, 0)
    assert not gain.fields()["beats"]


def test_a_difference_between_days_widens_the_interval() -> None:
    mixed = {day: (SHORT if day % 2 else LONG)[day] for day in DAYS}
    gain = gain_of("a set", "las", [mixed], [LONG])
    assert gain.low < gain.gain < gain.high


def test_no_day_of_a_virtual_cluster_has_two_uses() -> None:
    spans = [
        (each.args[0], *(each.args[1:] or ("2017-09-04",)))
        for use in Use
        for each in SETS[use, False]
        if isinstance(each, partial)
    ]
    for (cluster, first, *after), (other, later, *_) in combinations(sorted(spans), 2):
        assert cluster != other or after[0] <= later, f"{cluster} from {first} and from {later}"


def test_the_trained_weights_can_be_used() -> None:
    assert LearnedOrder.from_json("trained", WEIGHTS_FILE.read_bytes())
