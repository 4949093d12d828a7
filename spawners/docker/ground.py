"""What ``carrel up``, ``down`` and ``doctor`` ask of Docker, whether a service runs or not."""

from __future__ import annotations

import ipaddress
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ...hub.errors import Unavailable
from ...hub.ports.backend import BackendSettings, DockerOptions
from ...hub.ports.ground import Addresses, Finding
from .engine import Engine, Listed
from .networks import Networks
from .template import LABEL, LEASE

POOL: Final = ipaddress.IPv4Network("10.192.0.0/10")
RANGE: Final = 20
"""Prefix length of an installation's range: 255 networks of 13 containers each."""
_STEPS: Final = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 5.0))
_ASK_SECONDS: Final = 0.1
_ROUTES: Final = Path("/proc/net/route")


def create(settings: BackendSettings) -> DockerGround:
    """Entry point (group ``carrel.grounds``)."""
    assert settings.docker is not None
    return DockerGround(settings, settings.docker)


class DockerGround:
    """The engines of an installation."""

    def __init__(self, settings: BackendSettings, options: DockerOptions) -> None:
        self._settings = settings
        self._options = options
        self._engines = tuple(Engine(host) for host in options.hosts)

    def prepare(self, subnets: str) -> Addresses:
        engine = self._engines[0]
        subnets = subnets or free_range(taken(engine), self._settings.installation)
        networks = Networks(
            engine=engine, installation=self._settings.installation, subnets=subnets
        )
        return Addresses(subnets=subnets, internal_ip=networks.ensure_hub())

    def running(self) -> tuple[str, ...]:
        return tuple(sorted({each.labels[LEASE] for _, each in self._running()}))

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        wanted = frozenset(lease_ids)
        for number, seconds in _STEPS:
            left = [one for one in self._running() if one[1].labels[LEASE] in wanted]
            for engine, container in left:
                engine.kill(container.id, number.name)
            deadline = time.monotonic() + seconds
            while left and time.monotonic() < deadline:
                time.sleep(_ASK_SECONDS)
                left = [one for one in self._running() if one[1].labels[LEASE] in wanted]
            if not left:
                return ()
        return tuple(sorted({container.labels[LEASE] for _, container in left}))

    def findings(self) -> Iterator[Finding]:
        yield from ()

    def _running(self) -> Iterator[tuple[Engine, Listed]]:
        labels = {LABEL: self._settings.installation, LEASE: ""}
        for engine in self._engines:
            for each in engine.containers(labels):
                if each.running:
                    yield engine, each


def taken(engine: Engine) -> tuple[ipaddress.IPv4Network, ...]:
    """What this host reaches already, and what its engine has given away."""
    known = (subnet for network in engine.networks() for subnet in network.subnets)
    given = (ipaddress.IPv4Network(subnet) for subnet in known if ":" not in subnet)
    return (*given, *routes(_ROUTES.read_text()))


def routes(table: str) -> tuple[ipaddress.IPv4Network, ...]:
    """The networks of the kernel's table, without the route to everywhere."""
    found = []
    for line in table.splitlines()[1:]:
        columns = line.split()
        address, mask = (_address(columns[at]) for at in (1, 7))
        network = ipaddress.IPv4Network(f"{address}/{mask}")
        if network.prefixlen:
            found.append(network)
    return tuple(found)


def free_range(used: Iterable[ipaddress.IPv4Network], installation: str) -> str:
    """The installation's own place in the pool, or the next one that overlaps nothing.

    Raises:
        Unavailable: everything is used.
    """
    known = tuple(used)
    candidates = tuple(POOL.subnets(new_prefix=RANGE))
    first = int(installation, 16) % len(candidates)
    for step in range(len(candidates)):
        candidate = candidates[(first + step) % len(candidates)]
        if not any(candidate.overlaps(each) for each in known):
            return str(candidate)
    raise Unavailable(
        f"Every range in {POOL} overlaps a network of this host.",
        accepted="Choose another one: docker_subnets in settings.json, such as 172.30.0.0/20.",
    )


def _address(column: str) -> ipaddress.IPv4Address:
    """As the kernel prints it: hexadecimal, the last byte first."""
    return ipaddress.IPv4Address(bytes.fromhex(column)[::-1])
