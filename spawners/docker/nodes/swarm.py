"""Find out whether the Docker engines of all nodes form one swarm, which connects gangs on them.

Carrel uses nothing of a swarm but its overlay networks: it starts every container itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.backend import GangSupport
from ..containers.networks import MOST_MEMBERS
from ..containers.swarm_networks import SwarmNetworks
from ..engine.client import VXLAN_PORT, DockerClient, SwarmState

log = logging.getLogger(__name__)

_ALONE: Final = "The members of a job on several nodes could not reach each other: "
_FRESH_SECONDS: Final = 30.0
_REMOVE_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmConnection:
    """Whether a swarm connects all nodes.

    Attributes:
        manager: the node whose engine creates networks; empty if the nodes are not connected.
        problem: why they are not, as a sentence; empty where they are, or where there is one node.
        remedy: what an administrator can do about it.
        used: whether an engine is in a swarm.
    """

    manager: str = ""
    problem: str = ""
    remedy: str = ""
    used: bool = False


def connection_of(
    states: Mapping[str, SwarmState | None], silent: Collection[str] = ()
) -> SwarmConnection:
    """Return whether these engines form one swarm that Carrel can use.

    Args:
        states: by node; None for an engine that has never answered.
        silent: nodes whose engine does not answer now; another manager has precedence.
    """
    known = {node: state for node, state in states.items() if state is not None}
    used = any(state.node_id for state in known.values())

    def separate(problem: str, remedy: str) -> SwarmConnection:
        return SwarmConnection(problem=_ALONE + problem, remedy=remedy, used=used)

    if len(states) == 1:
        return SwarmConnection(used=used)
    if never := [node for node in states if node not in known]:
        return separate(
            f"the Docker engine on {', '.join(never)} has not answered yet.", "Start it there."
        )
    if outside := [node for node, state in known.items() if not state.node_id]:
        return separate(
            f"the Docker engine on {', '.join(outside)} is in no swarm.",
            "Connect the engines of all nodes: docker swarm init on one, docker swarm join on the "
            "others.",
        )
    managers = [node for node, state in known.items() if state.nodes]
    if not managers:
        return separate(
            "none of the nodes manages the swarm of their Docker engines.",
            "Make a node of Carrel a manager: docker node promote NAME.",
        )
    manager = min(managers, key=lambda node: node in silent)
    nodes = known[manager].nodes
    if others := [node for node, state in known.items() if state.node_id not in nodes]:
        return separate(
            f"the Docker engine on {', '.join(others)} is in another swarm than that on {manager}.",
            "docker swarm leave there, then docker swarm join with the token of the other swarm.",
        )
    if known[manager].data_port != VXLAN_PORT:
        return separate(
            f"the networks of the swarm use UDP port {known[manager].data_port}, and the firewall "
            f"rules of Carrel close {VXLAN_PORT} to containers.",
            f"Create the swarm with --data-path-port {VXLAN_PORT}.",
        )
    return SwarmConnection(manager=manager, used=used)


class Swarm:
    """The swarm of the nodes; safe to use from any thread.

    An engine that does not answer counts as it last did: it may be back before a job starts.
    """

    def __init__(self, engines: Sequence[DockerClient], installation: str, subnets: str) -> None:
        self._engines = {engine.node: engine for engine in engines}
        self._installation = installation
        self._subnets = subnets
        self._states: dict[str, SwarmState | None] = dict.fromkeys(self._engines)
        self._silent: frozenset[str] = frozenset(self._engines)
        self._asked_at = float("-inf")
        self._first = threading.Lock()
        self._creation = threading.Lock()

    def support(self) -> GangSupport:
        """Return what a gang can be, as of the last ``refresh``."""
        with self._first:
            if self._asked_at < 0:
                self.refresh_if_old()
        connection = self.connection()
        return GangSupport(
            most_members=MOST_MEMBERS,
            across_nodes=bool(connection.manager),
            why_one_node=connection.problem,
        )

    def connection(self) -> SwarmConnection:
        return connection_of(self._states, self._silent)

    def refresh_if_old(self) -> None:
        """Ask all engines, if there are several and the last answers are half a minute old."""
        if len(self._engines) > 1 and time.monotonic() - self._asked_at > _FRESH_SECONDS:
            self.refresh()

    def refresh(self) -> None:
        """Ask all engines; return when each has answered or not."""
        with ThreadPoolExecutor(max_workers=len(self._engines)) as threads:
            found = dict(zip(self._engines, threads.map(_ask, self._engines.values()), strict=True))
        self._states = {node: found[node] or state for node, state in self._states.items()}
        self._silent = frozenset(node for node, state in found.items() if state is None)
        self._asked_at = time.monotonic()

    def ensure(self, owner: str, lease_id: str, nodes: Sequence[str]) -> str:
        """Return the subnet of the network of a gang on several nodes; create it if needed.

        Raises:
            BackendFailed: the nodes are not in one swarm any more, or the range is exhausted.
            Unavailable: an engine does not answer.
        """
        with self._creation:
            self.refresh()
            connection = self.connection()
            if not connection.manager:
                raise BackendFailed(connection.problem, accepted=connection.remedy)
            engines = [self._engines[node] for node in nodes]
            return self._networks(connection.manager).ensure(owner, lease_id, engines)

    def remove_unused(self, live: Callable[[], Collection[str]]) -> None:
        """Remove the networks of leases that have ended."""
        for node in self._managers():
            self._networks(node).remove_unused(live)

    def remove_all(self) -> None:
        """Remove all networks of the installation, when no container is left.

        The swarm learns a moment later that a container has ended.
        """
        self.refresh()
        deadline = time.monotonic() + _REMOVE_SECONDS
        for node in self._managers():
            engine, networks = self._engines[node], self._networks(node)
            while left := [each for each in networks.own() if not engine.remove_network(each.id)]:
                if time.monotonic() > deadline:
                    log.warning("%s is still in use on another node: not removed", left[0].name)
                    break
                time.sleep(_POLL_SECONDS)

    def _managers(self) -> list[str]:
        return [
            node
            for node, state in self._states.items()
            if state is not None and state.nodes and node not in self._silent
        ]

    def _networks(self, node: str) -> SwarmNetworks:
        return SwarmNetworks(
            manager=self._engines[node], installation=self._installation, subnets=self._subnets
        )


def _ask(engine: DockerClient) -> SwarmState | None:
    try:
        return engine.swarm()
    except (BackendFailed, Unavailable) as error:
        log.info("%s", error)
        return None
