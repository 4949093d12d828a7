"""Installations on a real engine: a backend for each test, and a whole one for several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from carrel.hub.interfaces.backend_settings import DockerHost

from ..docker_engine import DockerEngine
from ..e2e.support import Installation
from .kit import Site, make_site
from .lab import USER, answers, containers_for_people, stop, wait_until_free


@pytest.fixture(scope="session")
def docker_host(docker_engine: DockerEngine) -> DockerHost:
    return DockerHost(node="local", url=docker_engine.url)


@pytest.fixture
def site(docker_host: DockerHost, base_image: str, tmp_path: Path) -> Iterator[Site]:
    made = make_site(tmp_path, (docker_host,), base_image)
    yield made
    made.service.down()
    made.close()


@pytest.fixture(scope="package")
def lab(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with containers_for_people(docker_engine, tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def client(docker_engine: DockerEngine) -> Iterator[docker.APIClient]:
    made = docker_engine.client()
    yield made
    made.close()


@pytest.fixture
def session(lab: Installation) -> Iterator[dict[str, Any]]:
    """student1's, on the one device, running."""
    request = lab.start_session(USER)
    lab.wait_for(request["id"], "running", user=USER)
    answers(lab)
    yield lab.request(request["id"], user=USER)
    if lab.request(request["id"], user=USER)["ended_at"] is None:
        stop(lab, request)
    wait_until_free(lab)
