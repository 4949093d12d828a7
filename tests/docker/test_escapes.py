"""Everything that a container must not be able to do is tried in one, and in one that may.

The second is what makes the first mean something: an attempt that cannot succeed proves nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import docker
import pytest

from carrel.hub.ports.backend import DockerHost
from carrel.hub.ports.records import Json
from carrel.spawners.docker import template
from carrel.spawners.docker.template import Bounds, Task

from .escapes import ATTEMPTS, SUCCESS, Attempt, Control
from .kit import MIB, Site, make_site

pytestmark = pytest.mark.docker

_SECONDS = "30"
_LISTEN = "python -m http.server 8888"


@dataclass(slots=True, kw_only=True)
class Place:
    """Containers in which the same is tried; ``at`` is where its aims are."""

    api: docker.APIClient
    hardened: str
    controls: Mapping[Control, str]
    at: Mapping[str, Json]

    def tried(self, attempt: Attempt, container: str) -> bool:
        """Whether it succeeded there."""
        program = f"import json, sys; at = json.loads(sys.argv[1]){attempt.source}"
        command = ["timeout", _SECONDS, "python", "-c", program, json.dumps(self.at)]
        made = self.api.exec_create(container, command)["Id"]
        said = self.api.exec_start(made).decode(errors="replace")
        return SUCCESS in said


@pytest.fixture(scope="module")
def place(
    docker_host: DockerHost, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with ExitStack() as stack:
        site = make_site(tmp_path_factory.mktemp("site"), (docker_host,), base_image)
        stack.callback(site.close)
        stack.callback(site.service.down)
        site.backend._nodes["local"].require_guard(60)
        yield _build(site, stack)


def _build(site: Site, stack: ExitStack) -> Place:
    api, image = site.api, site.image
    networks = site.backend._nodes["local"].networks
    mine, theirs = networks.ensure("student1"), networks.ensure("student2")
    neighbour = _started(api, stack, template.container(_task(site, theirs, "j-theirs.1", _LISTEN)))
    metadata = f"carrel-test-{secrets.token_hex(3)}"
    _with_metadata(api, stack, metadata, image)
    about = api.inspect_container(neighbour)
    public = stack.enter_context(socket.create_server(("", 0)))
    private = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    asleep = {"Image": image, "Entrypoint": [], "Cmd": ["sleep", "900"], "User": "0:0"}
    # Not "Privileged": that asks for more than an engine which runs in a container itself has.
    open_to_all = {
        "CapAdd": ["SYS_ADMIN", "NET_RAW", "MKNOD", "SYS_PTRACE"],
        "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
        "DeviceCgroupRules": ["b *:* rmw", "c *:* rmw"],
        "MaskedPaths": [],
        "ReadonlyPaths": [],
        "NetworkMode": "host",
        "PidMode": "host",
        "Binds": [f"{_socket(site)}:/var/run/docker.sock"],
    }
    controls = {
        Control.OPEN: _started(
            api,
            stack,
            {**asleep, "Env": ["NVIDIA_VISIBLE_DEVICES=all"], "HostConfig": open_to_all},
        ),
        Control.BESIDE: _started(api, stack, {**asleep, "HostConfig": {"NetworkMode": theirs}}),
    }
    wants_all = _task(site, mine, "j-mine.1", "sleep 900", NVIDIA_VISIBLE_DEVICES="all")
    return Place(
        api=api,
        hardened=_started(api, stack, template.container(wants_all)),
        controls=controls,
        at={
            "device": _device(),
            "socket": _socket(site),
            "service": site.options.internal_ip,
            "service_port": site.options.service_port,
            "host": _address_of_host(),
            "host_port": public.getsockname()[1],
            "local_port": private.getsockname()[1],
            "neighbour": about["NetworkSettings"]["Networks"][theirs]["IPAddress"],
            "neighbour_name": about["Name"].lstrip("/"),
        },
    )


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
        bounds=Bounds(memory=512 * MIB, cpus=1.0, pids=128, tmp=64 * MIB),
        environment=environment,
    )


def _started(api: docker.APIClient, stack: ExitStack, body: Mapping[str, Json]) -> str:
    name = f"carrel-test-{secrets.token_hex(4)}"
    made = str(api.create_container_from_config(dict(body), name)["Id"])
    stack.callback(api.remove_container, made, force=True)
    api.start(made)
    return made


def _with_metadata(api: docker.APIClient, stack: ExitStack, name: str, image: str) -> None:
    """A cloud's metadata service, as far as an address makes one."""
    pool = docker.types.IPAMPool(subnet="169.254.169.0/24", gateway="169.254.169.1")
    ipam = docker.types.IPAMConfig(pool_configs=[pool])
    network = api.create_network(name, driver="bridge", ipam=ipam)["Id"]
    stack.callback(api.remove_network, network)
    body = {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["sh", "-c", _LISTEN],
        "HostConfig": {"NetworkMode": name},
        "NetworkingConfig": {
            "EndpointsConfig": {name: {"IPAMConfig": {"IPv4Address": "169.254.169.254"}}}
        },
    }
    _started(api, stack, body)


def _socket(site: Site) -> str:
    return site.options.hosts[0].url.removeprefix("unix://")


def _device() -> list[Json]:
    """One that may be opened here at all: this host may be a container itself."""
    disk = os.stat("/").st_dev
    for name in (f"/dev/block/{os.major(disk)}:{os.minor(disk)}", "/dev/loop0", "/dev/kmsg"):
        try:
            os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
        except OSError:
            continue
        about = os.stat(name)
        return [about.st_mode, os.major(about.st_rdev), os.minor(about.st_rdev)]
    pytest.skip("this host has no device that could be opened")


def _address_of_host() -> str:
    """The one that it is known by outside; nothing is sent for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect(("192.0.2.1", 9))
        return str(towards.getsockname()[0])


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_it_is_denied_in_a_container_and_possible_without_the_hardening(
    place: Place, attempt: Attempt
) -> None:
    assert place.tried(attempt, place.controls[attempt.control]), "this attempt proves nothing"
    assert not place.tried(attempt, place.hardened)


def test_the_service_is_reached_from_a_container(place: Place) -> None:
    """The wall has this one door."""
    reached = Attempt(
        name="",
        source="""
import socket
socket.create_connection((at["service"], at["service_port"]), timeout=5).close()
print("ESCAPED")
""",
    )
    assert place.tried(reached, place.hardened)
