"""`carrel down` removes an installation's own objects from an engine, and no others."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.spawners.docker.containers import firewall
from carrel.spawners.docker.containers.subnets import has_address
from carrel.spawners.docker.host import create
from carrel.spawners.docker.nodes.node import firewall_rules

from .kit import Site, make_site

pytestmark = pytest.mark.docker


@pytest.fixture
def neighbour(docker_host: DockerHost, base_image: str, tmp_path: Path) -> Iterator[Site]:
    made = make_site(tmp_path / "neighbour", (docker_host,), base_image)
    yield made
    made.service.down()
    made.close()


def test_firewall_and_networks_are_removed_and_those_of_another_installation_stay(
    site: Site, neighbour: Site
) -> None:
    for each in (site, neighbour):
        each.backend.node("local").require_firewall(60)
        each.backend.node("local").networks.ensure("student1")
    assert {table(site), table(neighbour)} <= tables(site)
    ground = create(site.settings)
    ground.clear()
    assert table(site) not in tables(site)
    assert table(neighbour) in tables(site)
    left = " ".join(network.name for network in site.engine.networks())
    assert site.settings.installation not in left
    assert neighbour.settings.installation in left
    ground.clear()  # Once more, when nothing is left.


def test_a_network_without_its_bridge_is_created_again(site: Site) -> None:
    """A person or another program deleted the bridge; the engine does not look."""
    ground = create(site.settings)
    site.service.down()
    (bridge,) = re.findall(
        rf"^\d+: (crl{site.settings.installation}-hub):", interfaces("-oneline", "link"), re.M
    )
    interfaces("link", "delete", bridge)
    assert not has_address(site.options.internal_ip)
    assert ground.prepare(site.options.subnets).internal_ip == site.options.internal_ip
    assert has_address(site.options.internal_ip)
    site.service.up()


def interfaces(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
    return done.stdout


def table(site: Site) -> str:
    rules = firewall_rules(site.settings.installation, site.options, site.options.hosts[0])
    return f"table inet {rules.table}"


def tables(site: Site) -> set[str]:
    """Of the host, as the guard's own container sees them."""
    rules = firewall_rules("ffffff", site.options, site.options.hosts[0])
    body = firewall.body(rules, site.image, "list tables")
    status, said = site.engine.run_once("carrel-test-tables", body)
    assert status == 0, said
    return set(said.splitlines())
