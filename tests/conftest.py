"""What any folder of tests may ask for: a real Docker engine, and the base image in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from . import docker_engine as engines
from .property_settings import QUICK

# Until pytest loads the one that --hypothesis-profile names.
settings.load_profile(QUICK)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[engines.DockerEngine]:
    with engines.docker_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def base_image(docker_engine: engines.DockerEngine) -> str:
    """Its id; built at the first use."""
    return engines.base_image(docker_engine)


@pytest.fixture(scope="session")
def grading_image(docker_engine: engines.DockerEngine, base_image: str) -> str:
    """The same of the one in which submissions are graded."""
    return engines.grading_image(docker_engine, base_image)
