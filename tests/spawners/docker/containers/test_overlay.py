"""An administrator's DockerSpawner options apply, but the hardening takes precedence."""

from __future__ import annotations

from typing import Any

import docker
import pytest

from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.docker.containers.overlay import overlay
from carrel.spawners.docker.containers.template import ContainerBounds, Mount, Task, container

GIB = 2**30
BOUNDS = ContainerBounds(memory=4 * GIB, cpus=2.0, pids=512, tmp=GIB)


def ours(**more: Any) -> dict[str, Any]:
    task = Task(
        installation="abc123",
        lease_id="s-1.1",
        request_id="s-1",
        epoch=1,
        owner="student1",
        kind="session",
        image="sha256:" + "1" * 64,
        command=(),
        uid=1000,
        network="carrel-abc123-u-student1",
        bounds=BOUNDS,
        environment={"HOME": "/home/student1", "CUDA_VISIBLE_DEVICES": "all"},
        mounts=[Mount(source="/srv/homes/student1", target="/home/student1")],
        workdir="/home/student1",
        **more,
    )
    return dict(container(task))


def formed(host: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the body that DockerSpawner creates through docker-py."""
    config = docker.types.ContainerConfig(
        "1.41",
        image="an/image",
        command=["jupyterhub-singleuser"],
        environment={"NVIDIA_VISIBLE_DEVICES": "all", "SITE": "cs"},
        host_config=docker.types.HostConfig(version="1.41", **(host or {})),
        **more,
    )
    return dict(config)


def test_options_cannot_weaken_the_hardening() -> None:
    everything_open = {
        "privileged": True,
        "cap_add": ["SYS_ADMIN"],
        "security_opt": ["seccomp=unconfined"],
        "devices": ["/dev/nvidia0:/dev/nvidia0:rwm"],
        "pid_mode": "host",
        "network_mode": "host",
        "read_only": False,
        "pids_limit": -1,
        "userns_mode": "host",
        "group_add": ["docker"],
        "cgroup_parent": "/",
        "links": {"other": "other"},
        "device_requests": [docker.types.DeviceRequest(count=-1, capabilities=[["gpu"]])],
    }
    made = overlay(
        formed(everything_open, user="root", mac_address="02:42:00:00:00:01"), ours(), {}
    )
    host = made["HostConfig"]
    assert isinstance(host, dict)
    template = ours()["HostConfig"]

    assert made["User"] == "1000:1000"
    assert {name: host[name] for name in template} == template
    assert host["Privileged"] is False
    assert host["ReadonlyRootfs"] is True
    assert host["DeviceRequests"] == []
    assert host["Devices"] == host["GroupAdd"] == []
    for gone in ("CapAdd", "PidMode", "UsernsMode", "CgroupParent", "Links"):
        assert gone not in host
    assert "MacAddress" not in made


def test_options_of_the_administrator_apply() -> None:
    host = {
        "binds": {"/srv/data": {"bind": "/data", "mode": "ro"}},
        "runtime": "nvidia",
        "tmpfs": {"/scratch": "size=1g"},
        "shm_size": 8 * GIB,
        "dns": ["10.0.0.53"],
    }
    made = overlay(formed(host, labels={"site": "cs"}), ours(), {"carrel.server": "b"})
    merged = made["HostConfig"]
    assert isinstance(merged, dict)

    assert made["Cmd"] == ["jupyterhub-singleuser"]
    assert merged["Binds"] == ["/srv/data:/data:ro"]
    assert merged["Runtime"] == "nvidia"
    assert merged["ShmSize"] == 8 * GIB
    assert merged["Dns"] == ["10.0.0.53"]
    assert set(merged["Tmpfs"]) == {"/scratch", "/tmp", "/run"}
    assert made["Labels"] == {**ours()["Labels"], "site": "cs", "carrel.server": "b"}
    assert "SITE=cs" in made["Env"]


@pytest.mark.parametrize("devices", [0, 1])
def test_devices_of_the_lease_override_options(devices: int) -> None:
    leased = [
        Device(id="GPU-1", node="local", index=0, model="H200", memory_bytes=1, simulated=False)
    ][:devices]
    made = overlay(formed(), ours(devices=leased), {})
    environment = dict(each.split("=", 1) for each in made["Env"])

    assert environment["CUDA_VISIBLE_DEVICES"] == ("GPU-1" if devices else "")
    assert environment["NVIDIA_VISIBLE_DEVICES"] == ("GPU-1" if devices else "void")
    assert len(made["Env"]) == len(environment)
