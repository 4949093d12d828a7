"""Contract of the store: the use of CPU, memory and devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.records.utilization import (
    AttemptUtilization,
    HeldDevices,
    UtilizationPoint,
    UtilizationSeries,
)
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.transitions import lifecycle

from .store_kit import DEAD, furnish, job, running

POINTS = (
    UtilizationPoint(memory_bytes=1 << 33, device_percent=40.5, device_bytes=1 << 34, readings=1),
    UtilizationPoint(cores=0.75, memory_bytes=5, readings=2),
)
SERIES = UtilizationSeries(begins=1.5, seconds=5.0, points=POINTS)


def test_the_series_of_a_lease_is_stored_replaced_and_summed_up(store: Store) -> None:
    furnish(store)
    lease = running(store, job("a"), "D0", at=100.0)
    other = running(store, job("b"), "D1", at=100.0)
    store.put_utilization({lease.id: SERIES, "j-gone.1": SERIES})
    store.put_utilization({})
    longer = replace(SERIES, seconds=10.0, points=(*POINTS, POINTS[1]))
    store.put_utilization({lease.id: longer})

    assert store.utilization("j-a") == (
        AttemptUtilization(
            lease_id=lease.id, request_id="j-a", epoch=1, granted_at=100.0, series=longer
        ),
    )
    assert store.utilization("j-b") == ()
    assert store.utilization_of([lease.id, other.id]) == {lease.id: longer}
    assert store.utilization_summaries([lease.id, other.id]) == {lease.id: longer.summary}


def test_each_attempt_has_its_own_series(store: Store) -> None:
    furnish(store)
    first = running(store, job("a"), "D0", at=100.0)
    store.put_utilization({first.id: SERIES})
    store.apply_to_lease(
        first.id, lifecycle.lose, DEAD, now=200.0, charge_until=200.0, requeue=True
    )
    second = store.grant([Start(request_id="j-a", devices=("D0",))], now=300.0, lease_seconds=30)[0]
    store.put_utilization({second.id: UtilizationSeries()})
    found = store.utilization("j-a")
    assert [(each.epoch, each.series) for each in found] == [
        (1, SERIES),
        (2, UtilizationSeries()),
    ]


def test_what_was_held_is_read_lease_by_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(store)
    leases = [running(store, job(name), f"D{number}", at=100.0) for number, name in enumerate("ab")]
    store.put_utilization({lease.id: SERIES for lease in leases})
    built: list[float] = []

    def counted(*, begins: float, **others: Any) -> UtilizationSeries:
        built.append(begins)
        return UtilizationSeries(begins=begins, **others)

    monkeypatch.setattr("carrel.hub.store.sql.utilization.UtilizationSeries", counted)

    def fold(held: Iterator[HeldDevices]) -> list[tuple[int, int]]:
        return [(len(each.series.points), len(built)) for each in held]

    assert store.fold_held_devices(0.0, 200.0, fold) == [(2, 1), (2, 2)]
    assert store.fold_held_devices(0.0, 100.0, fold) == []
