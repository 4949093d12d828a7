"""The installation's own networks: one for the hub and the service, and one for each person.

Every network is a bridge with a small range of its own, cut from the installation's. What may
pass between bridges says ``guard``; it knows them by their names, which begin with the
installation's: ``crl`` for those that reach the outside, ``crn`` for those that do not.
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
"""Of a network: thirteen containers of one person."""
OUTSIDE: Final = "crl"
INSIDE: Final = "crn"
_TRIES = 20
_SETTLED_SECONDS = 60.0
"""A network that was made a moment ago waits for its first container."""
_IDLE_SECONDS: Final = 600.0


_making: Final[defaultdict[tuple[str, str], threading.Lock]] = defaultdict(threading.Lock)


def _one_at_a_time(node: str, name: str) -> threading.Lock:
    """Within this process; what another one makes at the same time is ``NameTaken``."""
    return _making[node, name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Of one engine.

    Attributes:
        subnets: the installation's range.
        turn, turns: which of how many engines this is. Each begins its search for a free part
            of the range elsewhere: engines that share a host do not know of each other's
            bridges.
    """

    engine: DockerClient
    installation: str
    subnets: str
    turn: int = 0
    turns: int = 1
    clock: Callable[[], float] = time.time
    _used: dict[str, float] = field(default_factory=dict)
    """When each was last seen to be of use, by name."""

    def ensure(self, owner: str, *, outside: bool = True) -> str:
        """The name of the owner's network, which is made if need be.

        Raises:
            BackendFailed: the installation's range is used up.
        """
        name = self.name(owner, outside=outside)
        # Somebody who asks for two things at once has one network; others are made beside it.
        with _one_at_a_time(self.engine.node, name):
            return self._ensure(name, owner, outside=outside)

    def _ensure(self, name: str, owner: str, *, outside: bool) -> str:
        taken = set[int]()
        for _ in range(_TRIES):
            known = self._own()
            if same := [each for each in known if each.name == name]:
                self._leave_one(same)
                self._used[name] = self.clock()
                return name
            number = self._free(name, known, taken)
            try:
                self._create(name, number, OUTSIDE if outside else INSIDE, owner)
            except NameTaken:
                # Somebody made the same network, or has the number: a service beside this one,
                # or nobody any more, where an engine was killed while it made a bridge.
                taken.add(number)
        raise BackendFailed(f"No network could be made on {self.engine.node} for {owner}.")

    def ensure_hub(self) -> str:
        """The network of the hub and the service; returns this host's address in it."""
        name = f"carrel-{self.installation}-hub"
        if not any(each.name == name for each in self._own()):
            try:
                self._create(name, 0, OUTSIDE, "")
            except NameTaken:
                if not any(each.name == name for each in self._own()):
                    raise
        return self.gateway(0)

    def name(self, owner: str, *, outside: bool = True) -> str:
        return f"carrel-{self.installation}-{'u' if outside else 'n'}-{safe_name(owner)}"

    def tidy(self, now: float | None = None) -> None:
        """Take away what no container has used for a while; sooner where many are in use.

        Making one takes a session a good part of its start. And who starts something between
        two looks at a network shall not find it gone.
        """
        now = self.clock() if now is None else now
        own = [each for each in self._own() if each.labels.get(OWNER)]
        patience = _SETTLED_SECONDS if 2 * len(own) > self._count else _IDLE_SECONDS
        for each in own:
            used = max(each.created, self._used.get(each.name, 0.0))
            if used >= now - patience:
                continue
            users = self.engine.users_of(each.id)
            if users:
                self._used[each.name] = now
            elif users == 0 and self.engine.remove_network(each.id):
                self._used.pop(each.name, None)

    def gateway(self, number: int) -> str:
        """The host's own address in a network."""
        return str(self._subnet(number)[1])

    # -- inside ---------------------------------------------------------------------------

    def _own(self) -> tuple[Network, ...]:
        return self.engine.networks(f"{LABEL}={self.installation}")

    def _leave_one(self, same: list[Network]) -> None:
        """Of two that were made at once, where a service was killed as it asked for the first.

        An engine that finds two of one name connects nobody. Whoever looks removes the same one.
        """
        for extra in sorted(same, key=lambda each: (each.created, each.id), reverse=True):
            if len(same) > 1 and self.engine.remove_network(extra.id):
                same.remove(extra)

    def _create(self, name: str, number: int, kind: str, owner: str) -> None:
        bridge = f"{kind}{self.installation}-{f'{number:04}' if number else 'hub'}"
        self.engine.create_network(
            name,
            bridge=bridge,
            subnet=str(self._subnet(number)),
            gateway=self.gateway(number),
            # What goes to the hub's own network has to arrive as whoever sent it. What leaves
            # its machine could not be answered there; who may leave it, says the wall.
            outside=bool(number),
            labels={LABEL: self.installation, OWNER: owner},
        )

    def _free(self, name: str, known: tuple[Network, ...], taken: Set[int]) -> int:
        used = {subnet for each in known for subnet in each.subnets}
        for number in self._numbers(name):
            if number not in taken and str(self._subnet(number)) not in used:
                return number
        raise BackendFailed(
            f"Every network in {self.subnets} is in use: no more people can work at once.",
            accepted="A larger docker_subnets in settings.json, such as a /16.",
        )

    def _numbers(self, name: str) -> Iterator[int]:
        """All but the first, which is the hub's. Each name begins at a place of its own: a class
        that comes at once would else compete for one number after the other."""
        first = self._count * self.turn // self.turns + zlib.crc32(name.encode())
        yield from ((first + step) % self._count + 1 for step in range(self._count))

    @property
    def _count(self) -> int:
        return (1 << (PREFIX_LENGTH - self._range.prefixlen)) - 1

    def _subnet(self, number: int) -> ipaddress.IPv4Network:
        first = int(self._range.network_address) + (number << (32 - PREFIX_LENGTH))
        return ipaddress.IPv4Network((first, PREFIX_LENGTH))

    @property
    def _range(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.subnets)
