"""The notebooks of nbgrader's own tests: each gets the verdict that it should."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from carrel.courses.grading.answer_key import NotebookKey
from carrel.courses.grading.sanitizer import sanitize
from carrel.courses.releases.student_version import prepare
from carrel.hub.errors import InvalidInput

from . import ps1
from .engine_tests import (
    TESTS,
    key,
    prepared,
    test_each_submission_of_nbgraders_tests_has_its_verdict,
    test_hiding_the_traceback_is_noticed_in_the_students_kernel,
    test_the_effects_of_a_cell_end_with_its_sandbox,
)

__all__ = [
    "key",
    "test_each_submission_of_nbgraders_tests_has_its_verdict",
    "test_hiding_the_traceback_is_noticed_in_the_students_kernel",
    "test_the_effects_of_a_cell_end_with_its_sandbox",
]


@cache
def example() -> NotebookKey:
    return prepare("ps1", ps1.source()).key.notebooks[0]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.ipynb")), ids=lambda path: path.name)
def test_any_notebook_is_accepted_or_refused_with_a_sentence(path: Path) -> None:
    data = path.read_bytes()
    said = []
    for take in (
        lambda: prepare("ps1", {path.name: data}),
        lambda: sanitize(data, prepared().key.notebooks[0]),
        lambda: sanitize(data, example()),
    ):
        try:
            take()
        except InvalidInput as refused:
            said.append(str(refused))
    assert all(path.name in one or "notebook" in one for one in said)
