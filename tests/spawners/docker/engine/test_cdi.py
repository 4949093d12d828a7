"""Sessions request devices by CDI name where the engine lists them, as jobs do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from carrel.hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from carrel.hub.records.json_value import Json
from carrel.hub.scheduling.model.snapshot import Device
from carrel.hub.schemas import DeviceOut, LeaseOut
from carrel.hub.schemas.pool import DeviceFileOut
from carrel.spawners.docker.engine import cdi
from carrel.spawners.docker.engine.client import DockerClient
from carrel.spawners.docker.session import DockerSession

GPU = "GPU-1"
OLD: dict[str, Json] = {"Runtimes": {"nvidia": {}}}
NEW: dict[str, Json] = {
    "DiscoveredDevices": [
        {"Source": "cdi", "ID": f"nvidia.com/gpu={name}"} for name in ("0", GPU, "all")
    ]
}
BY_UUID = [{"Driver": "nvidia", "DeviceIDs": [GPU], "Capabilities": [["gpu"]]}]
BY_NAME = [{"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={GPU}"]}]


class EngineInfo:
    """The part of an engine client that returns the engine's information."""

    node = "local"

    def __init__(self, info: Mapping[str, Json]) -> None:
        self._info = info

    def info(self) -> Mapping[str, Json]:
        return self._info


class Created(DockerSession):
    """A session that records the body of the call that creates its container."""

    engine = cast(DockerClient, None)
    body: Mapping[str, Json]

    @property
    def client(self) -> SimpleNamespace:
        return SimpleNamespace(
            create_container_config=dict, create_container_from_config=self.record
        )

    def record(self, body: Mapping[str, Json], _name: str) -> None:
        self.body = body

    def get_env(self) -> dict[str, str]:
        return {"NVIDIA_VISIBLE_DEVICES": "all"}


def created(made: Created) -> Mapping[str, Json]:
    """Create the container; return the body of the call."""
    asyncio.run(made.docker("create_container", name="carrel-1"))
    return made.body


def session(folder: Path, info: Mapping[str, Json], *, simulated: bool = False) -> Created:
    options = DockerOptions(
        hosts=(DockerHost(node="local", url="unix:///nowhere"),),
        subnets="", internal_ip="", hub_port=1, service_port=2, image="base", uid=1000,
        memory=1 << 30, cpus=1.0, pids=64, tmp=1 << 20,
    )  # fmt: skip  # grouped by meaning
    settings = BackendSettings(state=folder, service_url="", installation="abc123", docker=options)
    made = Created(site=settings, user=SimpleNamespace(name="ada"), image="sha256:1")
    made.engine = cast(DockerClient, EngineInfo(info))
    device = DeviceOut(
        id=GPU, node="local", index=0, model="H200", memory_bytes=1, simulated=simulated,
        state="yours",
    )  # fmt: skip  # as above
    made.lease = LeaseOut(id="s-1.1", epoch=1, state="live", devices=[device], granted_at=0.0)
    return made


@pytest.mark.parametrize(
    ("info", "asked", "variable"), [(OLD, BY_UUID, GPU), (NEW, BY_NAME, "void")], ids=["old", "new"]
)
def test_a_session_asks_for_its_device_as_its_engine_gives_them(
    tmp_path: Path, info: Mapping[str, Json], asked: Json, variable: str
) -> None:
    body = created(session(tmp_path, info))
    host = cast(Mapping[str, Json], body["HostConfig"])
    assert host["DeviceRequests"] == asked
    environment = dict(each.split("=", 1) for each in cast(list[str], body["Env"]))
    assert environment["NVIDIA_VISIBLE_DEVICES"] == variable
    assert environment["CUDA_VISIBLE_DEVICES"] == GPU


def test_an_engine_is_not_asked_for_simulated_devices(tmp_path: Path) -> None:
    made = session(tmp_path, NEW, simulated=True)
    made.engine = cast(DockerClient, None)
    host = cast(Mapping[str, Json], created(made)["HostConfig"])
    assert host["DeviceRequests"] == []
    device = Device(id="SIM-1", node="n", index=0, model="", memory_bytes=1, simulated=True)
    assert cdi.names(made.engine, (device,)) == frozenset()


def test_a_session_gets_the_files_of_a_device_of_amd_and_their_groups(tmp_path: Path) -> None:
    made = session(tmp_path, OLD)
    assert made.lease is not None
    (device,) = made.lease.devices
    files = [
        DeviceFileOut(path="/dev/kfd", group=109),
        DeviceFileOut(path="/dev/dri/renderD128", group=44),
    ]
    amd = device.model_copy(update={"driver": "amd", "files": files})
    made.lease = made.lease.model_copy(update={"devices": [amd]})
    body = created(made)
    host = cast(Mapping[str, Json], body["HostConfig"])
    paths = [
        cast(Mapping[str, Json], each)["PathOnHost"] for each in cast(list[Json], host["Devices"])
    ]
    assert paths == ["/dev/kfd", "/dev/dri/renderD128"]
    assert (host["GroupAdd"], host["DeviceRequests"]) == (["109", "44"], [])
    environment = dict(each.split("=", 1) for each in cast(list[str], body["Env"]))
    assert environment["ROCR_VISIBLE_DEVICES"] == GPU
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"
