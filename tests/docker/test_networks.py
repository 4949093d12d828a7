"""Networks of people are made where there is room, whatever else this host reaches there."""

from __future__ import annotations

import ipaddress
import secrets

import docker
import pytest

from .kit import Site

pytestmark = pytest.mark.docker


def test_a_part_of_the_range_that_somebody_else_has_is_passed_over(site: Site) -> None:
    """Another engine of this host may, or a bridge that an engine left when it was killed."""
    networks = site.backend._nodes["local"].networks
    first = ipaddress.ip_address(networks.gateway(1)) - 1
    pool = docker.types.IPAMPool(subnet=f"{first}/28")
    name = f"carrel-test-{secrets.token_hex(3)}"
    api = site.api
    api.create_network(name, driver="bridge", ipam=docker.types.IPAMConfig(pool_configs=[pool]))
    try:
        made = networks.ensure("student1")
    finally:
        api.remove_network(name)
    (found,) = (each for each in site.engine.networks() if each.name == made)
    assert found.subnets == (f"{first + 16}/28",)
    assert networks.ensure("student1") == made
