"""What attempts to get out of a container aim at, and the containers in which they succeed."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import docker
import pytest

from carrel.hub.records.json_value import Json
from carrel.spawners.docker.containers.networks import Networks

from ..e2e.support import eventually
from .escapes import SUCCESS, Attempt, Control
from .inside import inside

_SECONDS = "30"
_LISTEN = "python -m http.server 8888"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``at`` is where the aims are; ``controls`` are the containers without the hardening."""

    api: docker.APIClient
    controls: Mapping[Control, str]
    at: Mapping[str, Json]

    def tried(self, attempt: Attempt, container: str) -> bool:
        """Whether it succeeded there."""
        return succeeds(self.api, container, attempt.source, self.at)


def succeeds(api: docker.APIClient, container: str, source: str, at: Mapping[str, Json]) -> bool:
    program = f"import json, sys; at = json.loads(sys.argv[1]){source}"
    command = ("timeout", _SECONDS, "python", "-c", program, json.dumps(at))
    return SUCCESS in inside(api, container, *command)


def place_of(
    stack: ExitStack,
    *,
    url: str,
    networks: Networks,
    image: str,
    address: str,
    port: int,
) -> Place:
    """Beside an installation whose service has this address; the other user is ``student2``.

    ``url``: of the engine, by its socket.
    """
    api = docker.APIClient(url, version="auto", timeout=60)
    theirs = networks.ensure("student2")
    body = {"Image": image, "Entrypoint": [], "Cmd": ["sh", "-c", _LISTEN]}
    neighbour = started(api, stack, {**body, "HostConfig": {"NetworkMode": theirs}})
    _with_metadata(api, stack, image)
    about = api.inspect_container(neighbour)
    public = stack.enter_context(socket.create_server(("", 0)))
    private = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    engine_socket = url.removeprefix("unix://")
    return Place(
        api=api,
        controls=_controls(api, stack, image, theirs, engine_socket),
        at={
            "device": _device(),
            "socket": engine_socket,
            "service": address,
            "service_port": port,
            "host": _address_of_host(),
            "host_port": public.getsockname()[1],
            "local_port": private.getsockname()[1],
            "neighbour": about["NetworkSettings"]["Networks"][theirs]["IPAddress"],
            "neighbour_name": about["Name"].lstrip("/"),
        },
    )


def _controls(
    api: docker.APIClient, stack: ExitStack, image: str, theirs: str, engine_socket: str
) -> Mapping[Control, str]:
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
        "Binds": [f"{engine_socket}:/var/run/docker.sock"],
    }
    everything = {**asleep, "Env": ["NVIDIA_VISIBLE_DEVICES=all"], "HostConfig": open_to_all}
    return {
        Control.OPEN: started(api, stack, everything),
        Control.BESIDE: started(api, stack, {**asleep, "HostConfig": {"NetworkMode": theirs}}),
    }


def started(api: docker.APIClient, stack: ExitStack, body: Mapping[str, Json]) -> str:
    name = f"carrel-test-{secrets.token_hex(4)}"
    made = str(api.create_container_from_config(dict(body), name)["Id"])
    stack.callback(api.remove_container, made, force=True)
    api.start(made)
    return made


def _with_metadata(api: docker.APIClient, stack: ExitStack, image: str) -> None:
    """A cloud's metadata service, as far as an address makes one."""
    name = f"carrel-test-{secrets.token_hex(3)}"
    pool = docker.types.IPAMPool(subnet="169.254.169.0/24", gateway="169.254.169.1")
    ipam = docker.types.IPAMConfig(pool_configs=[pool])

    def create() -> str:
        """Return the id of the network; empty while another test module has the address."""
        try:
            return str(api.create_network(name, driver="bridge", ipam=ipam)["Id"])
        except docker.errors.APIError as error:
            if "overlaps" not in str(error):
                raise
            return ""

    network = eventually(create, "the address of the metadata service is free", within=180)
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
    started(api, stack, body)


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
