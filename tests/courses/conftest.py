"""One local sandbox engine, and the keys of two assignments, for all tests of courses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.courses.releases.solution_check import ReleaseCheck, check_release
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxSettings
from carrel.courses.sandbox.local.engine import create

from .grading import cheats, ps1

pytest.register_assert_rewrite(f"{__package__}.grading.engine_tests")


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[SandboxEngine]:
    engine = create(SandboxSettings(imports=("numpy",)))
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def ps1_check(sandboxes: SandboxEngine) -> ReleaseCheck:
    return check_release(sandboxes, prepare("ps1", ps1.source()), ps1.source())


@pytest.fixture(scope="session")
def secret_check(sandboxes: SandboxEngine) -> ReleaseCheck:
    return check_release(sandboxes, prepare("secret", cheats.source()), cheats.source())
