"""Measured use that an earlier version has stored."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries
from carrel.hub.store import open_store

from ....contracts.store_kit import furnish, job, running


def test_values_that_an_earlier_version_did_not_measure_are_none(tmp_path: Path) -> None:
    file = tmp_path / "carrel.db"
    store = open_store(file)
    furnish(store)
    lease = running(store, job("a"), "D0", at=100.0)
    point = UtilizationPoint(cores=0.5, readings=2, waiting=1.0, throttled=0.1)
    series = UtilizationSeries(begins=1.0, seconds=5.0, points=(point,))
    store.put_utilization({lease.id: series})
    with sqlite3.connect(file) as database:
        database.execute(
            "UPDATE utilization SET points = json_remove(points, '$.waiting', '$.throttled')"
        )
    [found] = store.utilization("j-a")
    store.close()
    assert found.series.points == (UtilizationPoint(cores=0.5, readings=2),)
