"""The pressure of a machine is read as far as its kernel measures it."""

from __future__ import annotations

from pathlib import Path

from carrel.hub.records.utilization import NodePressure
from carrel.spawners.devices.pressure import node_pressure

SOME = "some avg10=1.00 avg60=42.50 avg300=9.00 total=7\nfull avg10=0.00 avg60=3.00 total=1\n"


def test_pressure_is_the_share_of_the_last_minute(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text(SOME)
    (tmp_path / "io").write_text("some avg10=x avg60=nan total=1\n")
    assert node_pressure(tmp_path) == NodePressure(cores=0.425)


def test_a_kernel_without_it_tells_nothing(tmp_path: Path) -> None:
    assert node_pressure(tmp_path) is None
