"""nbgrader's formgrader as in ``test_formgrader``, in the container of a teacher's session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..docker_engine import DockerEngine, site_file
from .browser import Person
from .formgrader import give_points_and_check_that_they_count, graded, teacher
from .support import Installation, installation

pytestmark = [pytest.mark.browser, pytest.mark.docker, pytest.mark.slow]

__all__ = ["graded", "teacher"]


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Replaces the fixture for this machine."""
    state = tmp_path_factory.mktemp("containers") / "state"
    site_file(state, docker_engine)
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 140.0\n")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


def test_points_given_by_a_person_count(graded: Installation, teacher: Person) -> None:
    give_points_and_check_that_they_count(graded, teacher)
