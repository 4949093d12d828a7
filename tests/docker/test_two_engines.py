"""Two engines on one machine are one pool: work runs where its device is, and is found there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from carrel.hub.interfaces.backend import ProcessState
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.spawners.docker.containers.template import LABEL

from ..docker_engine import DockerEngine, second_engine
from ..fake_service import eventually
from .kit import Site, make_site

UNTIL_TOLD = "until [ -e /carrel/attempt/go ]; do sleep 0.1; done; echo done"

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture(scope="module")
def second(docker_engine: DockerEngine, base_image: str) -> Iterator[DockerHost]:
    with second_engine(docker_engine, base_image) as engine:
        yield DockerHost(node="far", url=engine.url)


@pytest.fixture
def pool(
    docker_host: DockerHost, second: DockerHost, base_image: str, tmp_path: Path
) -> Iterator[Site]:
    made = make_site(tmp_path, (docker_host, second), base_image)
    yield made
    made.service.down()
    made.close()


def test_work_runs_on_the_machine_of_its_device(pool: Site) -> None:
    backend = pool.backend
    devices = {device.node: device for device in backend.inventory()}
    assert set(devices) == {"local", "far"}
    (image,) = (each for each in backend.images() if each.digest == pool.image)
    assert image.nodes == ("local", "far")
    orders = {
        node: pool.order(command=("sh", "-c", UNTIL_TOLD), devices=(device,))
        for node, device in devices.items()
    }
    for order in orders.values():
        backend.start(order)
    for host in pool.options.hosts:
        api = docker.APIClient(host.url, version="auto", timeout=30)
        label = f"{LABEL}={pool.settings.installation}"
        (found,) = api.containers(filters={"label": label})
        assert found["Labels"]["carrel.lease"] == orders[host.node].lease_id
    # Both reach the one service, and both are found again by a service that starts anew.
    pool.service.wait_for(lambda service: len(service.started) == 2)
    leases = {order.lease_id: None for order in orders.values()}
    anew = pool.again()
    assert {each.life for each in anew.status(leases).values()} == {ProcessState.ALIVE}
    for order in orders.values():
        (order.folder / "go").touch()
    eventually(lambda: {each.life for each in anew.status(leases).values()} == {ProcessState.DEAD})
    assert {each.exit_status for each in anew.status(leases).values()} == {0}
    for order in orders.values():
        assert "done" in pool.log(order)
