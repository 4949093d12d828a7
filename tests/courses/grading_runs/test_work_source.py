"""What a grading worker reports of its run."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from carrel.courses.gradebook.writer import GradebookWriter
from carrel.courses.grading.class_grader import GradingProgress
from carrel.courses.grading_runs.work_source import ServiceWorkSource
from carrel.courses.model.interfaces import Blobs
from carrel.hub.schemas.grading import GradingOrderOut
from carrel.spawners.runner.attempt.progress import ProgressFile, ProgressStep


def test_the_runner_reads_its_progress(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    order = GradingOrderOut(
        course="cs101",
        assignment="ps1",
        image="",
        question="",
        due=None,
        devices=0,
        seconds=60,
        source=[],
        apart=None,
        works=[],
    )
    source = ServiceWorkSource(
        order,
        lambda verdict: True,
        cast(Blobs, None),
        cast(GradebookWriter, None),
        progress_file=path,
    )
    source.progress(GradingProgress(done=3, total=4, seconds=12.0))
    assert ProgressFile(path).read_new() == ProgressStep(done=3, of=4, text="submissions graded")
