"""Which GPUs a container sees, from inside real containers, with stand-ins for GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.interfaces.backend import ProcessState
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.docker.containers.overlay import overlay
from carrel.spawners.docker.containers.template import ContainerBounds, Task, container
from carrel.spawners.docker.engine import cdi

from ..docker_engine import DockerEngine
from ..fake_service import eventually
from .gpus import GPUS, NODES, engine_with_gpus, has_cdi
from .kit import Site, make_site

pytestmark = [pytest.mark.docker, pytest.mark.slow]

LOOK = "for each in /dev/nvidia*; do head -c 1 $each >/dev/null && echo $each; done; true"
"""A GPU counts as seen where it can be read."""
ALL = sorted(place for place, _, _ in NODES.values())


@pytest.fixture(scope="module")
def engine(docker_engine: DockerEngine, base_image: str) -> Iterator[DockerEngine]:
    with engine_with_gpus(docker_engine, base_image) as made:
        yield made


@pytest.fixture(scope="module")
def greedy(engine: DockerEngine, base_image: str) -> str:
    """An image that asks for every GPU."""
    client = engine.client()
    made = client.create_container(base_image, ["true"])["Id"]
    config = {"Env": ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all"]}
    found = client.commit(made, repository="carrel/greedy", conf=config)["Id"]
    client.remove_container(made)
    return str(found)


@pytest.fixture
def site(engine: DockerEngine, greedy: str, tmp_path: Path) -> Iterator[Site]:
    host = DockerHost(node="local", url=engine.url)
    made = make_site(tmp_path, (host,), greedy)
    yield made
    made.service.down()
    made.close()


def seen(site: Site, *devices: Device) -> list[str]:
    """By a job on a lease of these, whose image and command ask for all."""
    command = ("sh", "-c", f"export NVIDIA_VISIBLE_DEVICES=all; {LOOK}")
    image = f"base@{site.image}"
    order = site.order(command=command, devices=devices, image=image)
    site.backend.start(order)
    lease = order.lease_id
    eventually(lambda: site.backend.status({lease: None})[lease].life is ProcessState.DEAD)
    return [line for line in site.log(order).splitlines() if line.startswith("/dev/nvidia")]


def test_without_carrel_an_image_that_requests_all_gpus_gets_all(
    engine: DockerEngine, greedy: str
) -> None:
    """So that the tests below can fail."""
    client = engine.client()
    made = client.create_container(greedy, ["sh", "-c", LOOK])["Id"]
    client.start(made)
    client.wait(made, timeout=30)
    said = client.logs(made).decode().split()
    client.remove_container(made)
    assert said == ALL


def test_a_lease_shows_its_gpu_and_no_other(site: Site) -> None:
    assert {gpu.id: seen(site, gpu) for gpu in GPUS} == {
        name: [place] for name, (place, _, _) in NODES.items()
    }
    assert seen(site, *GPUS) == ALL


def test_gpus_are_requested_by_name_where_the_engine_lists_names(site: Site) -> None:
    if not has_cdi():
        pytest.skip("this dockerd does not list devices by name (CDI)")
    assert cdi.names(site.engine, GPUS) == {f"nvidia.com/gpu={name}" for name in NODES}
    order = site.order(command=("sleep", "60"), devices=GPUS[1:])
    site.backend.start(order)
    (found,) = site.api.containers(filters={"label": f"carrel.lease={order.lease_id}"})
    asked = site.api.inspect_container(found["Id"])["HostConfig"]["DeviceRequests"]
    assert [(each["Driver"], each["DeviceIDs"]) for each in asked] == [
        ("cdi", [f"nvidia.com/gpu={GPUS[1].id}"])
    ]


def test_without_a_lease_no_gpu_is_seen(site: Site) -> None:
    assert seen(site) == []


@pytest.mark.parametrize("devices", [(), GPUS[:1]], ids=["no lease", "one GPU"])
def test_a_session_sees_only_its_leased_gpus_whatever_an_administrator_sets(
    site: Site, devices: tuple[Device, ...]
) -> None:
    options = site.options
    task = Task(
        installation=site.settings.installation,
        lease_id="s-1.1",
        request_id="s-1",
        epoch=1,
        owner="student1",
        kind="session",
        image=site.image,
        command=(),
        uid=options.uid,
        network="none",
        bounds=ContainerBounds(memory=options.memory, cpus=1.0, pids=64, tmp=1 << 20),
        devices=devices,
        cdi=cdi.names(site.engine, devices),
    )
    formed = {
        "Cmd": ["sh", "-c", LOOK],
        "Env": ["NVIDIA_VISIBLE_DEVICES=all"],
        "HostConfig": {"Runtime": "nvidia"},
    }
    _, said = site.engine.run_once("carrel-gpus-s-1.1", overlay(formed, container(task), {}))
    # Without a GPU the pattern stands for itself, and is no file.
    found = [line for line in said.splitlines() if line in ALL]
    assert found == [NODES[each.id][0] for each in devices]
