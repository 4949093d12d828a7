"""Simulate other machines by a network namespace."""

from __future__ import annotations

import ipaddress
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
from docker.errors import DockerException

from carrel.spawners.docker.containers.subnets import routes

from ..docker_engine import DockerEngine, site_file, unmount
from ..e2e.support import Installation, installation
from ..requirements import need

ADDRESS = "198.51.100.2"
"""The internet, for tests: an address that is reserved for examples."""
PORT = 8888
NEAR, FAR = "198.51.100.9", "198.51.100.10"
"""This machine, as another one of the pool reaches it, and that other one."""
HERE_NETWORK = "/proc/self/ns/net"
_OURS = "198.51.100.1"
_SEARCHED = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


@contextmanager
def outside_host(api: docker.APIClient, image: str) -> Iterator[None]:
    """A web server at ``ADDRESS``, which is none of ours."""
    body = {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["python", "-m", "http.server", str(PORT)],
        "HostConfig": {"NetworkMode": "none"},
    }
    server = api.create_container_from_config(body, f"carrel-test-{secrets.token_hex(4)}")["Id"]
    try:
        api.start(server)
        pid = api.inspect_container(server)["State"]["Pid"]
        cable(HERE_NETWORK, f"/proc/{pid}/ns/net", _OURS, ADDRESS)
        yield
    finally:
        # The cable goes with the network at its other end.
        api.remove_container(server, force=True)


@contextmanager
def network_namespace() -> Iterator[str]:
    """The path of a network namespace of its own."""
    name = f"carrel-{secrets.token_hex(4)}"
    ip("netns", "add", name)
    try:
        yield f"/run/netns/{name}"
    finally:
        ip("netns", "delete", name)


@contextmanager
def engine_in(
    network: str, first: DockerEngine, image: str, *, swarm: bool = False
) -> Iterator[DockerEngine]:
    """An engine in a network namespace, with an image of the first engine.

    Args:
        swarm: whether it can be in a swarm, which it leaves at the end.
    """
    # A socket's path is short: pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="carrel-docker-") as folder:
        engine = DockerEngine(
            url=f"unix://{folder}/docker.sock",
            folder=Path(folder),
            data=Path(folder, "data"),
            within=("nsenter", f"--net={network}"),
            live_restore=not swarm,
        )
        try:
            engine.start()
            engine.load(first, image)
            yield engine
        finally:
            if swarm:
                _leave(engine)
            engine.stop()
            unmount(Path(folder))


def _leave(engine: DockerEngine) -> None:
    """Leave the swarm, so that the engine lets go of the namespaces of its networks."""
    try:
        engine.client().leave_swarm(force=True)
    except DockerException:
        return  # It is in none.


@contextmanager
def far_machine(first: DockerEngine, image: str) -> Iterator[DockerEngine]:
    """A machine with an engine, addresses, routes and a firewall of its own; the disk is shared.

    It has the address ``FAR``, and reaches this one at ``NEAR``.
    """
    need("docker", shutil.which("dockerd"), "another machine needs dockerd")
    with network_namespace() as network:
        cable(HERE_NETWORK, network, NEAR, FAR)
        with engine_in(network, first, image) as engine:
            yield engine


@contextmanager
def two_machines(
    here: DockerEngine, far: DockerEngine, state: Path, *, devices: int
) -> Iterator[Installation]:
    """This machine, ``local``, and that one, ``far``, as one pool, with so many simulated devices
    each."""
    nodes = f'[[nodes]]\nname = "far"\ndocker_host = "{far.url}"\naddress = "{FAR}"\n'
    site_file(state, here, f'address = "{NEAR}"\n{nodes}')
    # Two engines and an installation start on one machine, which may be busy besides.
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 240\n")
    with installation(state, "--simulated-devices", str(devices), "--engine", "docker") as made:
        yield made


def cable(here: str, there: str, ours: str, theirs: str) -> None:
    """Connect two network namespaces, by path, with an address at each end."""
    wanted = ipaddress.ip_network(f"{ours}/30", strict=False)
    used = [each for each in routes(Path("/proc/net/route").read_text()) if each.overlaps(wanted)]
    need(
        "docker", not used, f"{wanted} is to be a cable, and this machine reaches {used} otherwise"
    )
    ends = [f"ct{end}{secrets.token_hex(4)}" for end in "ab"]
    ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
    for end, network, address in zip(ends, (here, there), (ours, theirs), strict=True):
        within = ("nsenter", f"--net={network}")
        ip("link", "set", end, "netns", network)
        ip("addr", "add", f"{address}/30", "dev", end, within=within)
        for name in (end, "lo"):
            ip("link", "set", name, "up", within=within)


def ip(*words: str, within: tuple[str, ...] = ()) -> None:
    program = shutil.which("ip", path=_SEARCHED)
    need("docker", os.geteuid() == 0 and program, "a network of its own needs iproute2 and root")
    subprocess.run([*within, str(program), *words], check=True)
