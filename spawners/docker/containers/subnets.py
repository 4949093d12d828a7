"""Find a range for an installation's networks that overlaps no network of this host."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ....hub.errors import Unavailable
from ..engine.client import DockerClient

POOL: Final = ipaddress.IPv4Network("10.192.0.0/10")
RANGE: Final = 20
"""Prefix length of an installation's range: 191 networks of 13 containers each."""
_ROUTES: Final = Path("/proc/net/route")


def used_networks(engine: DockerClient) -> tuple[ipaddress.IPv4Network, ...]:
    """Return the networks in this host's routing table, and those of its engine."""
    subnets = (subnet for network in engine.networks() for subnet in network.subnets)
    of_engine = (ipaddress.IPv4Network(subnet) for subnet in subnets if ":" not in subnet)
    return (*of_engine, *routes(_ROUTES.read_text()))


def routes(table: str) -> tuple[ipaddress.IPv4Network, ...]:
    """Return the networks of the kernel's routing table, without the default route."""
    networks = []
    for line in table.splitlines()[1:]:
        columns = line.split()
        address, mask = (_address(columns[at]) for at in (1, 7))
        network = ipaddress.IPv4Network(f"{address}/{mask}")
        if network.prefixlen:
            networks.append(network)
    return tuple(networks)


def has_address(ip: str) -> bool:
    """Whether this machine has the address now; an interface may still be coming up."""
    with socket.socket() as probe:
        try:
            probe.bind((ip, 0))
        except OSError:
            return False
    return True


def free_range(used: Iterable[ipaddress.IPv4Network], installation: str) -> str:
    """Return the installation's own range in the pool, or the next range without an overlap.

    Raises:
        Unavailable: every range overlaps a used network.
    """
    known = tuple(used)
    candidates = tuple(POOL.subnets(new_prefix=RANGE))
    first = int(installation, 16) % len(candidates)
    for step in range(len(candidates)):
        candidate = candidates[(first + step) % len(candidates)]
        if not any(candidate.overlaps(network) for network in known):
            return str(candidate)
    raise Unavailable(
        f"Every range in {POOL} overlaps a network of this host.",
        accepted="Set docker_subnets in settings.json to another range, such as 172.30.0.0/20.",
    )


def _address(column: str) -> ipaddress.IPv4Address:
    """Parse an address as the kernel prints it: hexadecimal, the last byte first."""
    return ipaddress.IPv4Address(bytes.fromhex(column)[::-1])
