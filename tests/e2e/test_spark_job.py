"""The notebook "camera traps" as a job: Spark with the memory and the cores of the job."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from ..pyspark_packages import PACKAGES, need_spark
from ..torch_packages import PACKAGES as TORCH
from .support import CARREL, ROOT, Installation, installation

pytestmark = pytest.mark.slow

CAMERA_TRAPS = ROOT / "courses" / "sample" / "camera-traps.ipynb"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    need_spark()
    TORCH.need()
    folders = (str(PACKAGES.folder), str(TORCH.folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    with installation(tmp_path / "state") as made:
        yield made


def printed(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Return what each cell has printed, by its id."""
    return {
        cell.id: "".join(each.get("text", "") for each in cell.get("outputs", ()))
        for cell in notebook.cells
    }


def test_camera_traps_are_told_apart_by_a_job(site: Installation, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "CARREL_URL": site.service,
        "CARREL_TOKEN": site.token("student1"),
        "NO_PROXY": "127.0.0.1",
    }

    def carrel(*words: str) -> str:
        done = subprocess.run(
            [CARREL, *words], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    options = ("-p", "pictures", "240", "--memory", "4GiB", "--time", "10m", "--json")
    job = json.loads(carrel("submit", str(CAMERA_TRAPS), *options))["id"]
    carrel("wait", job, "--json")
    carrel("output", job, "-o", str(tmp_path / "out.ipynb"), "--json")

    said = printed(nbformat.read(tmp_path / "out.ipynb", as_version=4))
    assert "240 pictures scored" in said["scores"]
    assert "largest difference from scores without Spark" in said["compare"]
    (accuracy,) = [line.split()[1] for line in said["train"].split("\n") if "accuracy" in line]
    assert float(accuracy) > 0.8  # by chance: 0.33
    assert "by a random forest" in said["sklearn"]
