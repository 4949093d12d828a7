from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.accounting import Charge, device_seconds, next_charge, total


def test_two_devices_for_ten_seconds_cost_twenty_device_seconds() -> None:
    assert device_seconds(2, 100.0, 110.0) == 20.0


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
