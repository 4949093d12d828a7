"""The notebook "camera traps" as a job: Spark with the memory and the cores of the job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..pyspark_packages import PACKAGES, need_spark
from ..torch_packages import PACKAGES as TORCH
from . import camera_traps
from .support import Installation, installation

pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    need_spark()
    TORCH.need()
    folders = (str(PACKAGES.folder), str(TORCH.folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    with installation(tmp_path / "state") as made:
        yield made


def test_camera_traps_are_told_apart_by_a_job(site: Installation, tmp_path: Path) -> None:
    camera_traps.check(camera_traps.job(site, tmp_path))
