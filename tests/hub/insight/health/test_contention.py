"""Runs that waited for something else than their device are told apart."""

from __future__ import annotations

import pytest

from carrel.hub.insight.health.contention import contention
from carrel.hub.records.utilization import NodePressure, UtilizationPoint, UtilizationSeries


def series(**values: float) -> UtilizationSeries:
    return UtilizationSeries(points=(UtilizationPoint(), UtilizationPoint(**values)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("use", "pressure", "expected"),
    [
        (series(cores=0.6, waiting=0.4), None, "its threads waited for a core for 40 % of"),
        (series(cores=1.0, waiting=0.4, throttled=0.3), None, "its CPU limit held it for 30 %"),
        (series(cores=0.1), NodePressure(disk=0.5), "processes of its node waited for the disk"),
        (None, NodePressure(memory=0.25), "processes of its node waited for memory for 25 %"),
        (series(cores=2.0, waiting=0.2), NodePressure(cores=0.9, disk=0.1), ""),
        (series(cores=0.02, waiting=0.05), None, ""),
        (None, None, ""),
    ],
    ids=["cores", "limit", "disk", "memory", "little", "nearly idle", "not measured"],
)
def test_what_a_run_waited_for(
    use: UtilizationSeries | None, pressure: NodePressure | None, expected: str
) -> None:
    found = contention(use, pressure)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)
