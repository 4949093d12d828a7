"""Charges of devices and shares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.model.snapshot import Share
from carrel.hub.scheduling.quota.accounting import device_seconds
from carrel.hub.scheduling.quota.tree import THOUSAND, size


def test_two_devices_for_ten_seconds_cost_twenty_device_seconds() -> None:
    assert device_seconds(2, 100.0, 110.0) == 20.0


def test_a_share_costs_its_part_of_the_device() -> None:
    quarter = Share(compute=0.25, memory_bytes=60 << 30)
    assert device_seconds(1, 100.0, 110.0, share=quarter) == 2.5
    assert device_seconds(1, 100.0, 110.0, share=Share(compute=1.0)) == 10.0
    assert device_seconds(1, 110.0, 100.0, share=quarter) == 0.0


@given(st.floats(0.001, 1.0), st.floats(0.0, 1e6))
def test_the_charge_of_a_share_is_its_part_of_a_quota(compute: float, seconds: float) -> None:
    share = Share(compute=compute)
    charged = device_seconds(1, 0.0, seconds, share=share)
    assert charged == size(1, share) / THOUSAND * seconds


@given(st.lists(st.sampled_from([0.125, 0.25, 0.5]), min_size=1, max_size=4))
def test_shares_that_fill_a_device_cost_no_more_than_the_device(parts: list[float]) -> None:
    rest = 1.0 - sum(parts)
    shares = [*parts, rest] if rest > 0 else [0.5, 0.5]
    charges = [device_seconds(1, 0.0, 80.0, share=Share(compute=part)) for part in shares]
    assert sum(charges) == device_seconds(1, 0.0, 80.0)


def test_a_clock_that_jumps_back_costs_nothing() -> None:
    assert device_seconds(2, 110.0, 100.0) == 0.0
