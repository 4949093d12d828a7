"""The notebook "camera traps" as a job of a student, and what it prints."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import nbformat

from .support import CARREL, ROOT, Installation

NOTEBOOK = ROOT / "courses" / "sample" / "camera-traps.ipynb"
PICTURES = 240


def job(site: Installation, folder: Path, *options: str) -> dict[str, str]:
    """Run the notebook as a job with 4 GiB; return what each cell has printed, by its id."""
    environment = {
        **os.environ,
        "HOME": str(folder),
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

    all_options = ("-p", "pictures", str(PICTURES), "--memory", "4GiB", "--time", "10m", *options)
    number = json.loads(carrel("submit", str(NOTEBOOK), *all_options, "--json"))["id"]
    carrel("wait", number, "--json")
    output = folder / "out.ipynb"
    carrel("output", number, "-o", str(output), "--json")
    return {
        cell.id: "".join(each.get("text", "") for each in cell.get("outputs", ()))
        for cell in nbformat.read(output, as_version=4).cells
    }


def check(printed: dict[str, str]) -> None:
    """All cells have run: scores equal those without Spark, and a classifier has learned."""
    assert f"{PICTURES} pictures scored" in printed["scores"]
    assert "largest difference from scores without Spark" in printed["compare"]
    (accuracy,) = [line.split()[1] for line in printed["train"].split("\n") if "accuracy" in line]
    assert float(accuracy) > 0.8  # by chance: 0.33
    assert "by a random forest" in printed["sklearn"]
