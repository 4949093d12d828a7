"""Devices of another machine are listed by one container there for each plug-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.interfaces.devices import DriverProblem
from carrel.hub.records.json_value import Json
from carrel.spawners.devices.inventory import NodeInventory
from carrel.spawners.devices.plugins import installed_plugins
from carrel.spawners.docker.engine.client import DockerClient
from carrel.spawners.docker.nodes.device_probe import devices_on

RUNTIME: dict[str, Json] = {"Runtimes": {"nvidia": {}}}
BY_NAME: dict[str, Json] = {
    "DiscoveredDevices": [{"ID": "nvidia.com/gpu=all"}, {"ID": "amd.com/gpu=all"}]
}
H200 = {"id": "GPU-1", "index": 0, "model": "NVIDIA H200", "memory_bytes": 1, "health": "ok"}
UNUSED = {"why": "", "pids": [], "utilization": 7, "used_bytes": 0}
OLD_IMAGE = json.dumps({"reason": "", "units": [H200 | UNUSED]})
ABSENT = json.dumps({"reason": "No AMD driver.", "installed": False, "units": []})


@dataclass
class Engine:
    """An engine whose containers print this: by plug-in, status and output."""

    about: Mapping[str, Json]
    prints: Mapping[str, tuple[int, str]]
    node: str = "far"
    bodies: dict[str, Mapping[str, Json]] = field(default_factory=dict)

    def info(self) -> Mapping[str, Json]:
        return self.about

    def run_once(self, name: str, body: Mapping[str, Json], *, seconds: float) -> tuple[int, str]:
        plugin = name.rpartition("-")[2]
        self.bodies[plugin] = body
        if plugin not in self.prints:
            raise BackendFailed("The container was not created.")
        return self.prints[plugin]

    def requests(self, plugin: str) -> Json:
        return cast(Mapping[str, Json], self.bodies[plugin]["HostConfig"])["DeviceRequests"]


def probe(engine: Engine) -> NodeInventory:
    return devices_on(cast(DockerClient, engine), "abc123", "sha256:1", installed_plugins())


def test_an_engine_with_the_nvidia_runtime_is_asked_for_these_devices_only() -> None:
    engine = Engine(RUNTIME, {"nvidia": (0, OLD_IMAGE)})
    found = probe(engine)
    assert [(each.device.node, each.device.id, each.mean_utilization) for each in found.found] == [
        ("far", "GPU-1", 7)
    ]
    assert (found.reason, found.problems, set(engine.bodies)) == ("", (), {"nvidia"})
    every = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}
    assert engine.requests("nvidia") == [every]
    assert "NVIDIA_VISIBLE_DEVICES=all" in cast(list[str], engine.bodies["nvidia"]["Env"])


def test_an_engine_that_gives_devices_of_both_makers_by_name_is_asked_for_both() -> None:
    engine = Engine(BY_NAME, {"nvidia": (0, OLD_IMAGE), "amd": (0, ABSENT)})
    assert [each.device.id for each in probe(engine).found] == ["GPU-1"]
    for plugin in ("nvidia", "amd"):
        named = {"Driver": "cdi", "DeviceIDs": [f"{plugin}.com/gpu=all"]}
        assert engine.requests(plugin) == [named]


def test_an_engine_without_devices_runs_no_container() -> None:
    engine = Engine({}, {})
    assert probe(engine).reason == "The engine on far cannot give containers devices."
    assert engine.bodies == {}


@pytest.mark.parametrize(
    ("amd", "why"),
    [
        ({"amd": (1, "no library\n")}, "The AMD driver could not be queried: no library."),
        ({"amd": (0, "[]")}, "The devices of far cannot be listed: "),
        ({}, "The devices of far cannot be listed: The container was not created."),
    ],
)
def test_a_probe_that_fails_takes_no_other_devices_along(
    amd: dict[str, tuple[int, str]], why: str
) -> None:
    found = probe(Engine(BY_NAME, {"nvidia": (0, OLD_IMAGE), **amd}))
    assert [each.device.id for each in found.found] == ["GPU-1"]
    (problem,) = found.problems
    assert problem == DriverProblem(node="far", driver="amd", why=problem.why)
    assert problem.why.startswith(why)
