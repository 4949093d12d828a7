"""Create the installation's networks: for the hub and the service, per user, and per gang.

Containers of a user cannot reach each other. The members of a gang have a network of their own, in
which they can.

Every network is a bridge with a small subnet of the installation's range, of which the last quarter
is for networks across nodes (``swarm_networks``). The firewall filters the
traffic between bridges. It matches their names: ``crl`` for networks with access to the internet or
``crn`` for those without, followed by the installation; those of gangs begin with ``crg`` and
``crh``.
"""

from __future__ import annotations

import ipaddress
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import Final

from ....hub.errors import BackendFailed
from ....hub.files.filenames import safe_name
from ..engine.client import DockerClient, NameTaken, Network
from .template import LABEL, OWNER

PREFIX_LENGTH: Final = 28
"""Prefix length of a network, for at most thirteen containers of a user."""
OUTSIDE: Final = "crl"
INSIDE: Final = "crn"
GANG_OUTSIDE: Final = "crg"
GANG_INSIDE: Final = "crh"
MOST_GANGS: Final = 255
"""Number of networks of gangs on one engine: the firewall lists them all."""
MOST_MEMBERS: Final = (1 << (32 - PREFIX_LENGTH)) - 3
"""Number of containers in a network: without its two special addresses and its gateway."""
_SMALLEST_SHARED: Final = 8
"""Number of subnets from which on a range has networks across nodes."""
_TRIES = 20
_SETTLED_SECONDS = 60.0
"""A new network is kept this long for its first container."""
_IDLE_SECONDS: Final = 600.0


_locks: Final[defaultdict[tuple[str, str], threading.Lock]] = defaultdict(threading.Lock)


def _creation_lock(node: str, name: str) -> threading.Lock:
    """Return the lock that serialises creation in this process.

    If another process creates the network, the engine raises ``NameTaken``.
    """
    return _locks[node, name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """The networks on one engine.

    Attributes:
        subnets: the installation's range.
        engine_index: index of this engine.
        engine_count: number of engines. Every engine starts its search for a free subnet at another
            place, because engines that share a host do not see each other's bridges.
    """

    engine: DockerClient
    installation: str
    subnets: str
    engine_index: int = 0
    engine_count: int = 1
    clock: Callable[[], float] = time.time
    _used: dict[str, float] = field(default_factory=dict)
    """When each network was last used, by name."""

    def ensure(self, owner: str, *, outside: bool = True) -> str:
        """Return the name of the owner's network; create the network if needed.

        Raises:
            BackendFailed: the installation's range is exhausted.
        """
        name = self.name(owner, outside=outside)
        # Two starts of one user share a network; networks of different users are created in
        # parallel.
        with _creation_lock(self.engine.node, name):
            return self._ensure(name, owner, outside=outside)

    def _ensure(self, name: str, owner: str, *, outside: bool, gang: bool = False) -> str:
        taken = set[int]()
        for _ in range(_TRIES):
            known = self._own()
            if same := [network for network in known if network.name == name]:
                self._remove_duplicates(same)
                self._used[name] = self.clock()
                return name
            number = self._free(name, known, taken, MOST_GANGS if gang else self._count)
            kind = (
                (GANG_OUTSIDE if outside else GANG_INSIDE)
                if gang
                else (OUTSIDE if outside else INSIDE)
            )
            try:
                self._create(name, number, kind, owner)
            except NameTaken:
                # Another process created this network or uses the number, or an engine was killed
                # while it created a bridge with this number.
                taken.add(number)
        raise BackendFailed(f"No network could be created on {self.engine.node} for {owner}.")

    def ensure_gang(self, owner: str, lease_id: str, *, outside: bool = True) -> str:
        """Return the name of the network of a gang; create the network if needed.

        Raises:
            BackendFailed: the range of networks of gangs is exhausted.
        """
        name = f"{self._gang_prefix}{'g' if outside else 'h'}-{safe_name(lease_id)}"
        with _creation_lock(self.engine.node, name):
            return self._ensure(name, owner, outside=outside, gang=True)

    @property
    def _gang_prefix(self) -> str:
        return f"carrel-{self.installation}-gang-"

    def ensure_hub(self) -> str:
        """Create the network of the hub and the service; return this host's address in it."""
        if not self._hub():
            try:
                self._create(self.hub_name, 0, OUTSIDE, "")
            except NameTaken:
                if not self._hub():
                    raise
        return self.gateway(0)

    def remove_hub(self) -> bool:
        """Remove the network of the hub and the service; return False if it is in use."""
        return all(self.engine.remove_network(network.id) for network in self._hub())

    @property
    def hub_name(self) -> str:
        return f"carrel-{self.installation}-hub"

    def _hub(self) -> tuple[Network, ...]:
        return tuple(network for network in self._own() if network.name == self.hub_name)

    def name(self, owner: str, *, outside: bool = True) -> str:
        return f"carrel-{self.installation}-{'u' if outside else 'n'}-{safe_name(owner)}"

    def remove_unused(self, now: float | None = None) -> None:
        """Remove networks that have been unused for a while; sooner if many are in use.

        They are kept for a while because the creation takes a good part of a session's start time,
        and because a start between two checks must not lose its network.
        """
        now = self.clock() if now is None else now
        own = [network for network in self._own() if network.labels.get(OWNER)]
        full = 2 * len(own) > self._count
        for network in own:
            # No other job uses the network of a gang again.
            short = full or network.name.startswith(self._gang_prefix)
            patience = _SETTLED_SECONDS if short else _IDLE_SECONDS
            used = max(network.created, self._used.get(network.name, 0.0))
            if used >= now - patience:
                continue
            users = self.engine.users_of(network.id)
            if users:
                self._used[network.name] = now
            elif users == 0 and self.engine.remove_network(network.id):
                self._used.pop(network.name, None)

    def gateway(self, number: int) -> str:
        """Return the host's address in a network."""
        return str(self._subnet(number)[1])

    # -- private --------------------------------------------------------------------------

    def _own(self) -> tuple[Network, ...]:
        found = self.engine.networks(f"{LABEL}={self.installation}")
        return tuple(network for network in found if not network.overlay)

    def _remove_duplicates(self, same: list[Network]) -> None:
        """Keep one of several networks with the same name; every process keeps the same one.

        Duplicates appear when a service is killed during a creation. An engine with two networks of
        one name connects containers to neither.
        """
        for extra in sorted(same, key=lambda network: (network.created, network.id), reverse=True):
            if len(same) > 1 and self.engine.remove_network(extra.id):
                same.remove(extra)

    def _create(self, name: str, number: int, kind: str, owner: str) -> None:
        bridge = f"{kind}{self.installation}-{f'{number:04}' if number else 'hub'}"
        self.engine.create_network(
            name,
            bridge=bridge,
            subnet=str(self._subnet(number)),
            gateway=self.gateway(number),
            # Traffic to the hub's own network must keep its source address; all other traffic
            # needs the host's address to get responses. The firewall filters outgoing traffic.
            outside=bool(number),
            shared=kind in (GANG_OUTSIDE, GANG_INSIDE),
            labels={LABEL: self.installation, OWNER: owner},
        )

    def _free(self, name: str, known: tuple[Network, ...], taken: Set[int], most: int) -> int:
        used = {subnet for network in known for subnet in network.subnets}
        for number in self._numbers(name):
            if number <= most and number not in taken and str(self._subnet(number)) not in used:
                return number
        raise BackendFailed(
            f"All networks in {self.subnets} are in use: no other user can start anything.",
            accepted="Set a larger docker_subnets in settings.json, such as a /16.",
        )

    def _numbers(self, name: str) -> Iterator[int]:
        """Yield all numbers except 0, which is the hub's.

        The first number depends on the name, so that users who start at the same time do not
        compete for the same numbers.
        """
        first = self._count * self.engine_index // self.engine_count + zlib.crc32(name.encode())
        yield from ((first + step) % self._count + 1 for step in range(self._count))

    @property
    def _count(self) -> int:
        total = 1 << (PREFIX_LENGTH - self._range.prefixlen)
        across = total // 4 if total >= _SMALLEST_SHARED else 0
        return total - across - 1

    def _subnet(self, number: int) -> ipaddress.IPv4Network:
        first = int(self._range.network_address) + (number << (32 - PREFIX_LENGTH))
        return ipaddress.IPv4Network((first, PREFIX_LENGTH))

    @property
    def _range(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.subnets)
