"""An installation on a real engine for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.ports.backend import DockerHost

from ..docker_engine import DockerEngine
from .kit import Site, make_site


@pytest.fixture(scope="session")
def docker_host(docker_engine: DockerEngine) -> DockerHost:
    return DockerHost(node="local", url=docker_engine.url)


@pytest.fixture
def site(docker_host: DockerHost, base_image: str, tmp_path: Path) -> Iterator[Site]:
    made = make_site(tmp_path, (docker_host,), base_image)
    yield made
    made.service.down()
    made.close()
