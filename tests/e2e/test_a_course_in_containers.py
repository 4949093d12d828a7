"""A course in the browser as in ``test_a_course``, graded in containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from ..docker_engine import DockerEngine, site_file
from .course_walk import from_the_roster_to_the_feedback
from .support import Installation, installation

pytestmark = [pytest.mark.browser, pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Replaces the fixture for this machine."""
    state = tmp_path_factory.mktemp("taught") / "state"
    site_file(state, docker_engine)
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


def test_from_the_roster_to_the_feedback(site: Installation, browser: Browser) -> None:
    from_the_roster_to_the_feedback(site, browser)
