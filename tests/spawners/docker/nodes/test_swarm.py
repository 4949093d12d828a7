"""Whether engines form one swarm, from what each of them says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import pytest

from carrel.hub.errors import BackendFailed, Unavailable
from carrel.hub.records.diagnostics import Severity
from carrel.spawners.docker.containers.networks import MOST_MEMBERS
from carrel.spawners.docker.doctor.swarm_check import several_nodes
from carrel.spawners.docker.engine.client import DockerClient, Network, SwarmState
from carrel.spawners.docker.nodes.swarm import Swarm, SwarmConnection, connection_of

BOTH = frozenset({"A", "B"})
MANAGER = SwarmState(node_id="A", nodes=BOTH, data_port=4789)
WORKER = SwarmState(node_id="B")
NONE = SwarmState()


@pytest.mark.parametrize(
    ("states", "problem", "remedy"),
    [
        pytest.param((NONE, NONE), "gpu1, gpu2 is in no swarm", "docker swarm init", id="no swarm"),
        pytest.param((MANAGER, NONE), "gpu2 is in no swarm", "docker swarm join", id="one outside"),
        pytest.param((MANAGER, None), "gpu2 has not answered yet", "Start it", id="one is silent"),
        pytest.param((SwarmState(node_id="A"), WORKER), "none of the nodes manages", "promote",
                     id="managed elsewhere"),
        pytest.param((MANAGER, SwarmState(node_id="C")), "gpu2 is in another swarm than that on "
                     "gpu1", "docker swarm leave", id="two swarms"),
        pytest.param((SwarmState(node_id="A", nodes=BOTH, data_port=7789), WORKER),
                     "use UDP port 7789", "--data-path-port 4789", id="another port"),
    ],
)  # fmt: skip  # as a table
def test_engines_that_are_not_connected(
    states: tuple[SwarmState | None, ...], problem: str, remedy: str
) -> None:
    found = connection_of(dict(zip(("gpu1", "gpu2"), states, strict=True)))
    assert found.manager == ""
    assert problem in found.problem
    assert remedy in found.remedy


def test_engines_of_one_swarm_are_connected_by_a_manager() -> None:
    assert connection_of({"gpu1": WORKER, "gpu2": MANAGER}) == SwarmConnection(
        manager="gpu2", used=True
    )
    second = SwarmState(node_id="B", nodes=BOTH, data_port=4789)
    assert connection_of({"gpu1": MANAGER, "gpu2": second}).manager == "gpu1"
    assert connection_of({"gpu1": MANAGER, "gpu2": second}, {"gpu1"}).manager == "gpu2"
    assert connection_of({"gpu1": MANAGER, "gpu2": second}, {"gpu1", "gpu2"}).manager == "gpu1"


def test_one_node_needs_no_swarm() -> None:
    assert connection_of({"gpu1": NONE}) == SwarmConnection()


@pytest.mark.parametrize(
    ("connection", "verdict", "said"),
    [
        (SwarmConnection(manager="gpu1", used=True), Severity.FINE, "form one swarm"),
        (SwarmConnection(problem="No."), Severity.FINE, "the engines form no swarm"),
        (SwarmConnection(problem="gpu2 is not.", used=True), Severity.WARNING, "gpu2 is not."),
    ],
)
def test_the_finding_warns_where_a_swarm_has_only_some_nodes(
    connection: SwarmConnection, verdict: Severity, said: str
) -> None:
    found = several_nodes(connection)
    assert found.verdict is verdict
    assert said in found.what


class SwarmEngine:
    """An engine in memory; ``state`` is None while it does not answer."""

    def __init__(self, node: str, state: SwarmState | None, bridges: tuple[str, ...] = ()) -> None:
        self.node = node
        self.state = state
        self.bridges = bridges
        self.overlays: list[Network] = []
        self.used: set[str] = set()
        self.calls = 0

    def swarm(self) -> SwarmState:
        self.calls += 1
        if self.state is None:
            raise Unavailable(f"The Docker engine on {self.node} does not answer.")
        return self.state

    def networks(self, label: str = "") -> tuple[Network, ...]:
        bridges = (
            Network(id=subnet, name=subnet, labels={}, subnets=(subnet,), created=0)
            for subnet in self.bridges
        )
        return (*bridges, *self.overlays)

    def create_overlay(self, name: str, *, subnet: str, labels: Mapping[str, str]) -> None:
        # Swarmkit's rule for names of networks.
        assert re.fullmatch(r"[a-zA-Z0-9](?:[-_]*[A-Za-z0-9]+)*", name)
        assert len(name) <= 63
        self.overlays.append(
            # The swarm has not assigned the subnet yet.
            Network(id=name, name=name, labels=labels, subnets=(), created=0, overlay=True)
        )

    def remove_network(self, network: str) -> bool:
        if network in self.used:
            return False
        self.overlays = [each for each in self.overlays if each.id != network]
        return True


def swarm_of(*engines: SwarmEngine, subnets: str = "10.200.0.0/20") -> Swarm:
    return Swarm([cast(DockerClient, engine) for engine in engines], "abc123", subnets)


def two() -> tuple[SwarmEngine, SwarmEngine]:
    return SwarmEngine("gpu1", MANAGER), SwarmEngine("gpu2", WORKER)


def test_gangs_may_be_on_all_nodes_of_a_swarm_also_while_one_does_not_answer() -> None:
    first, second = two()
    swarm = swarm_of(first, second)
    found = swarm.support()
    assert (found.across_nodes, found.most_members) == (True, MOST_MEMBERS)
    second.state = None
    swarm.refresh()
    assert swarm.support() == found
    second.state = NONE
    swarm.refresh()
    assert swarm.support().across_nodes is False
    assert "gpu2 is in no swarm" in swarm.support().why_one_node


def test_one_engine_is_not_asked() -> None:
    engine = SwarmEngine("local", NONE)
    swarm = swarm_of(engine)
    found = swarm.support()
    assert (found.across_nodes, found.why_one_node, engine.calls) == (False, "", 0)
    swarm.remove_unused(frozenset)
    swarm.refresh_if_old()
    assert engine.calls == 0


def test_each_gang_has_one_network_apart_from_all_others() -> None:
    first, second = two()
    second.bridges = ("10.200.12.16/28",)
    swarm = swarm_of(first, second)
    made = swarm.ensure("ada", "j-a.1", ["gpu1", "gpu2"])
    assert swarm.ensure("ada", "j-a.1", ["gpu1", "gpu2"]) == made
    other = swarm.ensure("ada", "j-b.1", ["gpu1", "gpu2"])
    # The last quarter of the range, without the bridge that the second engine still has there.
    assert (made, other) == ("10.200.12.32/27", "10.200.12.64/27")
    assert len(first.overlays) == 2
    assert second.overlays == []


def test_networks_go_with_their_leases() -> None:
    first, second = two()
    swarm = swarm_of(first, second)
    for lease in ("j-a.1", "j-b.1", "j-c.1"):
        swarm.ensure("ada", lease, ["gpu1", "gpu2"])
    first.used = {first.overlays[1].id}
    swarm.remove_unused(lambda: {"j-c.1"})
    assert [each.labels["carrel.lease"] for each in first.overlays] == ["j-b.1", "j-c.1"]
    first.used = set()
    swarm.remove_unused(lambda: {"j-c.1"})
    swarm.remove_all()
    assert first.overlays == []


def test_a_network_is_refused_where_the_nodes_are_no_longer_connected() -> None:
    first, second = two()
    swarm = swarm_of(first, second)
    assert swarm.support().across_nodes
    second.state = NONE
    with pytest.raises(BackendFailed, match="gpu2 is in no swarm"):
        swarm.ensure("ada", "j-a.1", ["gpu1", "gpu2"])
    assert first.overlays == []


def test_an_exhausted_range_names_the_setting() -> None:
    first, second = two()
    swarm = swarm_of(first, second, subnets="10.200.0.0/25")
    swarm.ensure("ada", "j-a.1", ["gpu1", "gpu2"])
    with pytest.raises(BackendFailed, match="docker_subnets"):
        swarm.ensure("ada", "j-b.1", ["gpu1", "gpu2"])
