"""nbgrader's formgrader as in ``test_formgrader``, in the container of a teacher's session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..docker_engine import DockerEngine, site_file
from .support import Installation, installation
from .test_formgrader import graded, teacher, test_a_person_gives_points_and_they_count

pytestmark = [pytest.mark.browser, pytest.mark.docker, pytest.mark.slow]

__all__ = ["graded", "teacher", "test_a_person_gives_points_and_they_count"]


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """In the place of that of this machine."""
    state = tmp_path_factory.mktemp("containers") / "state"
    site_file(state, docker_engine)
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 140.0\n")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made
