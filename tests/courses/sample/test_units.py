"""The units of the sample course in the grading sandbox: every test apart from student code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.courses.releases.solution_check import check_release
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxSettings
from carrel.courses.sandbox.local.engine import create

from .unit_notebooks import PLAIN, SOURCE

MOST_SECONDS = 30


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[SandboxEngine]:
    engine = create(
        SandboxSettings(imports=("matplotlib.pyplot", "numpy", "pandas", "sklearn.datasets"))
    )
    yield engine
    engine.close()


@pytest.mark.parametrize("name", PLAIN)
def test_a_unit_may_be_released(sandboxes: SandboxEngine, name: str) -> None:
    source = {f"{name}.ipynb": (SOURCE / name / f"{name}.ipynb").read_bytes()}
    prepared = prepare(name, source)
    assert prepared.warnings == ()
    found = check_release(sandboxes, prepared, source)
    assert found.problems == ()
    assert found.in_kernel == (), "every test looks at plain data only"
    assert found.solution_seconds < MOST_SECONDS
