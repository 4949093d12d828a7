"""Charges of a lease are consecutive intervals without gap or overlap."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.records.leases import LeaseRecord, LeaseState
from carrel.hub.scheduling.quota.accounting import decayed
from carrel.hub.transitions.lifecycle import charged, due
from carrel.hub.transitions.transition import LeaseInterval


def lease(devices: int, since: float) -> LeaseRecord:
    return LeaseRecord(
        id="j-a.1",
        request_id="j-a",
        epoch=1,
        node="local",
        devices=tuple(f"D{number}" for number in range(devices)),
        state=LeaseState.LIVE,
        granted_at=since,
        expires_at=since,
        seen_at=since,
        charged_until=since,
    )


def charges_of(held: LeaseRecord, moments: list[float]) -> list[LeaseInterval]:
    """Return the ledger after the lease was charged at each of these times."""
    ledger = []
    for moment in moments:
        interval = due(held, moment)
        if interval is not None:
            ledger.append(interval)
        held = charged(held, moment)
    return ledger


def test_a_clock_that_jumps_back_costs_nothing_and_charges_nothing_twice() -> None:
    ledger = charges_of(lease(2, 100.0), [160.0, 150.0, 160.0, 200.0])
    assert ledger == [
        LeaseInterval(starts_at=100.0, ends_at=160.0, devices=2),
        LeaseInterval(starts_at=160.0, ends_at=200.0, devices=2),
    ]
    assert fsum(interval.device_seconds for interval in ledger) == 200.0


def test_a_lease_without_devices_is_charged_nothing() -> None:
    assert charges_of(lease(0, 1.0), [5.0]) == []


@given(st.integers(1, 8), st.lists(st.floats(1e9, 2e9), min_size=1))
def test_charges_follow_each_other_without_gap_or_overlap(
    devices: int, moments: list[float]
) -> None:
    since = moments[0]
    ledger = charges_of(lease(devices, since), moments)
    ends = [since, *(interval.ends_at for interval in ledger)]
    assert [interval.starts_at for interval in ledger] == ends[:-1]
    assert ends[-1] == max(moments)
    together = fsum(interval.device_seconds for interval in ledger)
    assert together == pytest.approx(devices * (max(moments) - since))


def test_a_charge_counts_for_half_after_its_half_life_and_as_much_in_two_parts() -> None:
    whole = LeaseInterval(starts_at=0.0, ends_at=60.0, devices=1)
    parts = [replace(whole, ends_at=20.0), replace(whole, starts_at=20.0)]
    later = decayed(whole, 3600.0, 1800.0)
    assert decayed(whole, 5400.0, 1800.0) == pytest.approx(later / 2)
    assert sum(decayed(part, 3600.0, 1800.0) for part in parts) == pytest.approx(later)
