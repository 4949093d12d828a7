"""Everything that a container must not be able to do is tried in one, and in one that may.

The second is what makes the first mean something: an attempt that cannot succeed proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.spawners.docker.containers import template
from carrel.spawners.docker.containers.template import ContainerBounds, Task

from .escapes import ATTEMPTS, Attempt
from .kit import MIB, Site, make_site
from .surroundings import Place, place_of, started

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture(scope="module")
def there(
    docker_host: DockerHost,
    base_image: str,
    stack: ExitStack,
    tmp_path_factory: pytest.TempPathFactory,
) -> Site:
    site = make_site(tmp_path_factory.mktemp("site"), (docker_host,), base_image)
    stack.callback(site.close)
    stack.callback(site.service.down)
    site.backend.node("local").require_firewall(60)
    return site


@pytest.fixture(scope="module")
def place(there: Site, stack: ExitStack) -> Place:
    return place_of(
        stack,
        url=there.options.hosts[0].url,
        networks=there.backend.node("local").networks,
        image=there.image,
        address=there.options.internal_ip,
        port=there.options.service_port,
    )


@pytest.fixture(scope="module")
def job(there: Site, place: Place, stack: ExitStack) -> str:
    """A container as the template forms it, whose user asks for every device."""
    mine = there.backend.node("local").networks.ensure("student1")
    task = _task(there, mine, "j-mine.1", "sleep 900", NVIDIA_VISIBLE_DEVICES="all")
    return started(place.api, stack, template.container(task))


def _task(site: Site, network: str, lease: str, script: str, **environment: str) -> Task:
    return Task(
        installation=site.settings.installation,
        lease_id=lease,
        request_id=lease.partition(".")[0],
        epoch=1,
        owner="student",
        kind="job",
        image=site.image,
        command=("sh", "-c", script),
        uid=1000,
        network=network,
        bounds=ContainerBounds(memory=512 * MIB, cpus=1.0, pids=128, tmp=64 * MIB),
        environment=environment,
    )


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_it_is_denied_in_a_container_and_possible_without_the_hardening(
    place: Place, job: str, attempt: Attempt
) -> None:
    assert place.tried(attempt, place.controls[attempt.control]), "this attempt proves nothing"
    assert not place.tried(attempt, job)


def test_the_service_is_reached_from_a_container(place: Place, job: str) -> None:
    """The firewall has this one opening."""
    reached = Attempt(
        name="",
        source="""
import socket
socket.create_connection((at["service"], at["service_port"]), timeout=5).close()
print("ESCAPED")
""",
    )
    assert place.tried(reached, job)
