"""What any folder of tests may ask for: a real Docker engine, and the base image in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import docker_engine as engines


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[engines.DockerEngine]:
    with engines.docker_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def base_image(docker_engine: engines.DockerEngine) -> str:
    """Its id; built at the first use."""
    return engines.base_image(docker_engine)
