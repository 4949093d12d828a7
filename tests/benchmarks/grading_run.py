"""One class graded as the service's grader does it, but for the service: a process of its own.

    python -m tests.benchmarks.grading_run FOLDER [IMAGE]

``FOLDER/submitted`` is as nbgrader has it; the gradebook comes into ``FOLDER``. With the id of an
image the sandboxes are containers.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from carrel.courses.gradebook.gradebook import CourseGradebook
from carrel.courses.grading.class_grader import Terms, Work, grade_class
from carrel.courses.grading.duration import parallel
from carrel.courses.grading.submission_grader import SubmissionResult
from carrel.courses.releases.student_version import Prepared, prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxSettings
from carrel.courses.sandbox.plugins import load_sandbox_engine

from ..contracts.sandbox_kit import docker_options
from ..courses.grading import ps1
from ..courses.grading.bench import MemoryBench
from ..docker_engine import USUAL

APART = "apart.json"
"""In the folder: which tests the check before the release found to run apart."""


class BookBench(MemoryBench):
    """Puts each verdict into a gradebook as it comes, as nbgrader does."""

    def __init__(
        self, submissions: Mapping[str, Mapping[str, bytes]], book: CourseGradebook
    ) -> None:
        super().__init__(submissions)
        self._book = book

    def graded(self, work: Work, result: SubmissionResult) -> None:
        super().graded(work, result)
        self._book.record("ps1", result, files=self.files(work))


def grade(folder: Path, image: str) -> None:
    prepared = prepare("ps1", ps1.source())
    submitted = {each.name: _files(each / "ps1") for each in (folder / "submitted").iterdir()}
    apart = json.loads((folder / APART).read_text(encoding="utf-8"))
    notebooks = tuple(
        replace(each, apart=frozenset(apart[each.name])) for each in prepared.key.notebooks
    )
    engine = sandboxes(prepared, image)
    try:
        with closing(CourseGradebook(folder, "cs101")) as book:
            book.save_release(prepared, due=None)
            bench = BookBench(submitted, book)
            terms = Terms(parallel=parallel(), files=prepared.files)
            grade_class(engine, replace(prepared.key, notebooks=notebooks), bench, terms)
    finally:
        engine.close()


def sandboxes(prepared: Prepared, image: str) -> SandboxEngine:
    """Of this machine, or with the id of an image those of its Docker engine."""
    docker = docker_options(os.environ.get("DOCKER_HOST", USUAL)) if image else None
    settings = SandboxSettings(
        image=image, imports=prepared.imports, installation="benchmark", docker=docker
    )
    return load_sandbox_engine("docker" if image else "local", settings)


def _files(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


if __name__ == "__main__":
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    grade(Path(sys.argv[1]), "".join(sys.argv[2:]))
