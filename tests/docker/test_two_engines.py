"""Two engines on one machine are one pool: work runs where its device is, and is found there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from carrel.hub.ports.backend import DockerHost, Life
from carrel.spawners.docker.template import LABEL

from ..docker_engine import answers, unmount
from ..fake_service import eventually
from ..requirements import need
from .kit import Site, make_site

UNTIL_TOLD = "until [ -e /carrel/attempt/go ]; do sleep 0.1; done; echo done"

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture(scope="module")
def second(docker_host: DockerHost, base_image: str) -> Iterator[DockerHost]:
    """An engine with data of its own, and the same image by the same digest."""
    own = os.geteuid() == 0 and shutil.which("dockerd")
    need("docker", own, "a second Docker engine needs dockerd and root")
    # A socket's path is short: pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="carrel-docker-") as folder:
        url = f"unix://{folder}/docker.sock"
        with Path(folder, "log").open("wb") as log:
            engine = subprocess.Popen(
                [
                    "dockerd",
                    *("--data-root", f"{folder}/data"),
                    *("--exec-root", f"{folder}/exec"),
                    *("--pidfile", f"{folder}/pid"),
                    *("--host", url),
                    *("--bridge", "none"),
                    # The first engine keeps the tables of this machine.
                    "--iptables=false",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            eventually(lambda: answers(url))
            there = docker.APIClient(docker_host.url, version="auto", timeout=300)
            here = docker.APIClient(url, version="auto", timeout=300)
            for _ in here.load_image(there.get_image(base_image)):
                pass
            yield DockerHost(node="far", url=url)
        finally:
            engine.terminate()
            engine.wait(60)
            unmount(Path(folder))


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
    assert {each.life for each in anew.look(leases).values()} == {Life.ALIVE}
    for order in orders.values():
        (order.folder / "go").touch()
    eventually(lambda: {each.life for each in anew.look(leases).values()} == {Life.DEAD})
    assert {each.exit_status for each in anew.look(leases).values()} == {0}
    for order in orders.values():
        assert "done" in pool.log(order)
