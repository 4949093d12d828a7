from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.model.snapshot import Allocation, Share
from carrel.hub.scheduling.quota.accounting import (
    Charge,
    decayed,
    device_seconds,
    next_charge,
    total,
)
from carrel.hub.scheduling.quota.tree import THOUSAND, size


def test_two_devices_for_ten_seconds_cost_twenty_device_seconds() -> None:
    assert device_seconds(2, 100.0, 110.0) == 20.0


def test_a_share_costs_its_part_of_the_device() -> None:
    quarter = Share(compute=0.25, memory_bytes=60 << 30)
    assert device_seconds(1, 100.0, 110.0, share=quarter) == 2.5
    assert device_seconds(1, 100.0, 110.0, share=Share(compute=1.0)) == 10.0
    assert device_seconds(1, 110.0, 100.0, share=quarter) == 0.0


@given(st.floats(0.001, 1.0), st.floats(0.0, 1e6))
def test_what_a_share_is_charged_is_what_it_counts_against_a_quota(
    compute: float, seconds: float
) -> None:
    share = Share(compute=compute)
    charged = device_seconds(1, 0.0, seconds, share=share)
    assert charged == size(1, share) / THOUSAND * seconds


def test_an_allocation_of_a_share_is_charged_in_proportion() -> None:
    held = Allocation(
        request_id="s-a",
        owner="ada",
        group="lab",
        devices=("D0",),
        since=100.0,
        until=900.0,
        share=Share(compute=0.4),
    )
    charges = []
    charged_until = held.since
    for until in (160.0, 150.0, 160.0, 200.0):
        charge = next_charge(
            devices=len(held.devices),
            share=held.share,
            charged_until=charged_until,
            until=until,
        )
        if charge is not None:
            charges.append(charge)
            charged_until = charge.ends_at
    assert charges == [
        Charge(starts_at=100.0, ends_at=160.0, device_seconds=24.0),
        Charge(starts_at=160.0, ends_at=200.0, device_seconds=16.0),
    ]
    assert total(charges) == 40.0


def test_past_use_of_a_share_decays_as_that_of_whole_devices() -> None:
    def of(share: Share | None) -> float:
        charge = next_charge(devices=1, share=share, charged_until=0.0, until=3600.0)
        assert charge is not None
        return decayed(charge, 7200.0, 3600.0)

    assert of(Share(compute=0.5)) == pytest.approx(of(None) / 2)


@given(st.lists(st.sampled_from([0.125, 0.25, 0.5]), min_size=1, max_size=4))
def test_shares_that_fill_a_device_cost_no_more_than_the_device(parts: list[float]) -> None:
    rest = 1.0 - sum(parts)
    shares = [*parts, rest] if rest > 0 else [0.5, 0.5]
    charges = [device_seconds(1, 0.0, 80.0, share=Share(compute=part)) for part in shares]
    assert sum(charges) == device_seconds(1, 0.0, 80.0)


def test_a_clock_that_jumps_back_costs_nothing() -> None:
    assert device_seconds(2, 110.0, 100.0) == 0.0
    assert next_charge(devices=2, charged_until=110.0, until=100.0) is None


def test_a_ledger_that_is_complete_lacks_nothing() -> None:
    assert next_charge(devices=2, charged_until=110.0, until=110.0) is None


def test_a_lease_without_devices_is_charged_nothing_and_shows_when_it_ran() -> None:
    assert next_charge(devices=0, charged_until=1.0, until=5.0) == Charge(
        starts_at=1.0, ends_at=5.0, device_seconds=0.0
    )


@given(st.integers(0, 8), st.lists(st.floats(1e9, 2e9), min_size=1))
def test_charges_follow_each_other_without_gap_or_overlap(
    devices: int, moments: list[float]
) -> None:
    begin = charged_until = moments[0]
    charges = []
    for until in moments:
        charge = next_charge(devices=devices, charged_until=charged_until, until=until)
        if charge is not None:
            assert charge.starts_at == charged_until
            charges.append(charge)
            charged_until = charge.ends_at

    assert charged_until == max(moments)
    assert abs(total(charges) - devices * (max(moments) - begin)) < 1e-3
    assert total(charges) == total(reversed(charges))
