"""Cheats and the notebooks of nbgrader's own tests get the same scores in containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.courses.releases.solution_check import ReleaseCheck, check_release
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxSettings
from carrel.spawners.docker.sandbox import DockerSandboxes

from ...contracts.sandbox_kit import docker_options
from ...docker_engine import DockerEngine
from . import cheats
from .engine_tests import (
    key,
    test_each_submission_of_nbgraders_tests_has_its_verdict,
    test_hiding_the_traceback_is_noticed_in_the_students_kernel,
    test_no_cheat_gets_points_here,
    test_the_cheats_that_one_kernel_cannot_prevent_are_known,
    test_the_effects_of_a_cell_end_with_its_sandbox,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]

__all__ = [
    "key",
    "test_each_submission_of_nbgraders_tests_has_its_verdict",
    "test_hiding_the_traceback_is_noticed_in_the_students_kernel",
    "test_no_cheat_gets_points_here",
    "test_the_cheats_that_one_kernel_cannot_prevent_are_known",
    "test_the_effects_of_a_cell_end_with_its_sandbox",
]


@pytest.fixture(scope="session")
def sandboxes(docker_engine: DockerEngine, grading_image: str) -> Iterator[SandboxEngine]:
    """Sandboxes in containers, which replace the local ones."""
    settings = SandboxSettings(image=grading_image, installation="cheats")
    engine = DockerSandboxes(settings, docker_options(docker_engine.url))
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def secret_check(sandboxes: SandboxEngine) -> ReleaseCheck:
    return check_release(sandboxes, prepare("secret", cheats.source()), cheats.source())
