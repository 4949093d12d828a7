"""When networks of users are removed, and which subnet each one gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from typing import cast

import pytest

from carrel.hub.errors import BackendFailed
from carrel.spawners.docker.containers.networks import Networks
from carrel.spawners.docker.containers.swarm_networks import overlay_subnets
from carrel.spawners.docker.containers.template import OWNER
from carrel.spawners.docker.engine.client import DockerClient, NameTaken, Network

NOW = 10_000.0


@dataclass(slots=True)
class Made:
    """The networks of an engine."""

    node: str = "local"
    there: list[Network] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def networks(self, label: str = "") -> tuple[Network, ...]:
        return tuple(self.there)

    def create_network(
        self, name: str, *, subnet: str, labels: Mapping[str, str], **_: object
    ) -> None:
        if any(subnet in each.subnets for each in self.there):
            raise NameTaken("overlaps")
        made = Network(id=name, name=name, labels=labels, subnets=(subnet,), created=NOW)
        self.there.append(made)

    def users_of(self, network: str) -> int:
        return int(network in self.used)

    def remove_network(self, network: str) -> bool:
        self.there = [each for each in self.there if each.id != network]
        return True


def networks(engine: Made, subnets: str = "10.192.0.0/20") -> Networks:
    return Networks(
        engine=cast(DockerClient, engine), installation="abc123", subnets=subnets, clock=lambda: NOW
    )


def test_the_last_quarter_of_the_range_is_left_to_networks_across_nodes() -> None:
    engine = Made()
    made = networks(engine, "10.192.0.0/24")
    for number in range(11):
        made.ensure(f"student{number}")
    (across,) = overlay_subnets("10.192.0.0/25")
    assert across == IPv4Network("10.192.0.96/27")
    taken = {subnet for each in engine.there for subnet in each.subnets}
    assert taken == {f"10.192.0.{16 * number}/28" for number in range(1, 12)}
    with pytest.raises(BackendFailed, match="are in use"):
        made.ensure("one more")


def test_a_network_across_nodes_is_not_taken_for_an_unused_one() -> None:
    engine = Made()
    made = networks(engine)
    made.ensure("ada")
    engine.there.append(replace(engine.there[0], id="across", name="across", overlay=True))
    made.remove_unused(NOW + 3600)
    assert [each.id for each in engine.there] == ["across"]


def test_each_user_has_another_preferred_subnet() -> None:
    """Users who start at the same time then rarely compete for one."""
    engines = [Made() for _ in range(20)]
    for number, engine in enumerate(engines):
        networks(engine).ensure(f"student{number}")
    assert len({engine.there[0].subnets for engine in engines}) >= 18


@pytest.mark.parametrize(
    ("people", "after", "stays"),
    [
        pytest.param(3, 300, True, id="it is kept for who comes back"),
        pytest.param(3, 700, False, id="not for good"),
        pytest.param(20, 300, False, id="nor where the range is nearly used up"),
        pytest.param(20, 30, True, id="though never in the moment before it is used"),
    ],
)
def test_an_unused_network_is_kept_for_a_while(people: int, after: float, stays: bool) -> None:
    engine = Made()
    made = networks(engine, "10.192.0.0/23")
    for number in range(people):
        made.ensure(f"student{number}")
    made.remove_unused(NOW + after)
    assert bool(engine.there) is stays


def test_a_used_network_is_kept_for_a_while_after_its_last_use() -> None:
    engine = Made()
    made = networks(engine)
    name = made.ensure("ada")
    engine.used = {name}
    made.remove_unused(NOW + 3600)
    engine.used = set()
    made.remove_unused(NOW + 3700)
    assert [each.labels[OWNER] for each in engine.there] == ["ada"]
    made.remove_unused(NOW + 3600 + 700)
    assert engine.there == []
