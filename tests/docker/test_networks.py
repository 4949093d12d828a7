"""Networks of users are created where subnets are free."""

from __future__ import annotations

import ipaddress
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import docker
import pytest

from carrel.spawners.docker.containers.template import LABEL, OWNER

from .kit import Site

pytestmark = pytest.mark.docker


def test_a_whole_class_gets_its_networks_at_once(site: Site) -> None:
    """One for each user, even if a user starts two sessions at the same time."""
    networks = site.backend.node("local").networks
    people = [f"student{number}" for number in range(20)] * 2
    with ThreadPoolExecutor(len(people)) as threads:
        made = list(threads.map(networks.ensure, people))
    assert made == [networks.name(person) for person in people]
    there = [each.name for each in site.engine.networks(f"{LABEL}={networks.installation}")]
    assert sorted(each for each in there if "-u-" in each) == sorted(set(made))


def test_a_subnet_used_by_another_network_is_skipped(site: Site) -> None:
    """Another engine of this host may, or a bridge that an engine left when it was killed."""
    networks = site.backend.node("local").networks
    first = ipaddress.ip_network(subnet_of(site, networks.ensure("student1"))).network_address
    site.engine.remove_network(networks.name("student1"))
    pool = docker.types.IPAMPool(subnet=f"{first}/28")
    name = f"carrel-test-{secrets.token_hex(3)}"
    api = site.api
    api.create_network(name, driver="bridge", ipam=docker.types.IPAMConfig(pool_configs=[pool]))
    try:
        made = networks.ensure("student1")
    finally:
        api.remove_network(name)
    assert subnet_of(site, made) == f"{first + 16}/28"
    assert networks.ensure("student1") == made


def subnet_of(site: Site, name: str) -> str:
    (found,) = (each for each in site.engine.networks() if each.name == name)
    (subnet,) = found.subnets
    return subnet


def test_of_two_with_one_name_only_one_is_left(site: Site) -> None:
    """A service was killed while it made one, and the next had it made again beside it."""
    networks = site.backend.node("local").networks
    name = networks.ensure("student1")
    (first,) = (each for each in site.engine.networks() if each.name == name)
    free = ipaddress.ip_network(first.subnets[0]).network_address + 32
    pool = docker.types.IPAMPool(subnet=f"{free}/28")
    labels = {LABEL: site.settings.installation, OWNER: "student1"}
    with suppress(docker.errors.APIError):  # newer engines refuse that
        ipam = docker.types.IPAMConfig(pool_configs=[pool])
        site.api.create_network(name, driver="bridge", ipam=ipam, labels=labels)
    assert networks.ensure("student1") == name
    assert [each.id for each in site.engine.networks() if each.name == name] == [first.id]
