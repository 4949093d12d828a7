"""The doctor's findings, from what engines report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.config.backend import docker_options
from carrel.hub.config.settings import Settings
from carrel.hub.config.site import SiteFile
from carrel.hub.records.diagnostics import Finding, Severity
from carrel.hub.records.json_value import Json
from carrel.spawners.docker.doctor import engine_info

FINE, WARNING, MISSING = Severity.FINE, Severity.WARNING, Severity.MISSING
LIMITED: dict[str, Json] = {
    "MemoryLimit": True, "SwapLimit": True, "PidsLimit": True, "CpuCfsQuota": True,
    "CgroupVersion": "2",
}  # fmt: skip  # as one row


def found(subject: str, verdict: Severity, what: str, mend: str = "") -> Finding:
    return Finding(subject=subject, verdict=verdict, what=what, mend=mend)


@pytest.mark.parametrize(
    ("told", "verdict", "said"),
    [
        ({}, FINE, "cgroup v2"),
        ({"SwapLimit": False}, WARNING, "does not limit swap"),
        ({"SwapLimit": False, "MemoryLimit": False}, MISSING, "does not limit memory, swap"),
    ],
)
def test_missing_kernel_limits_are_reported(
    told: dict[str, Json], verdict: Severity, said: str
) -> None:
    one = engine_info.limits(found, {**LIMITED, **told})
    assert one.verdict is verdict
    assert said in one.what


@pytest.mark.parametrize(
    ("options", "verdict", "said"),
    [
        (["name=seccomp,profile=default"], FINE, "under seccomp"),
        (["name=apparmor", "name=seccomp,profile=builtin"], FINE, "under seccomp"),
        ([], MISSING, "does not filter system calls"),
        (["name=seccomp,profile=unconfined"], MISSING, "does not filter system calls"),
        (["name=seccomp,profile=default", "name=userns"], MISSING, "userns-remap"),
        (["name=seccomp,profile=default", "name=rootless"], MISSING, "without root"),
    ],
)
def test_isolation_of_containers(options: list[str], verdict: Severity, said: str) -> None:
    one = engine_info.isolation(found, {"SecurityOptions": options})
    assert one.verdict is verdict
    assert said in one.what


@pytest.mark.parametrize(
    ("told", "driver", "verdict", "said"),
    [
        ({"Runtimes": {"runc": {}}}, False, FINE, "no NVIDIA devices"),
        ({"Runtimes": {"runc": {}}}, True, MISSING, "cannot give devices to containers"),
        ({"Runtimes": {"nvidia": {}}, "ServerVersion": "20.10.24"}, True, FINE, "by UUID."),
        ({"Runtimes": {"nvidia": {}}, "ServerVersion": "28.3.0"}, True, FINE, "could list them"),
        ({"DiscoveredDevices": [{"ID": "nvidia.com/gpu=0"}]}, True, FINE, "by name (CDI)"),
    ],
)
def test_how_containers_get_gpus(
    told: dict[str, Json], driver: bool, verdict: Severity, said: str
) -> None:
    one = engine_info.devices(found, told, driver=driver)
    assert one.verdict is verdict
    assert said in one.what


def test_an_engine_in_a_swarm_cannot_keep_containers_running() -> None:
    in_swarm: dict[str, Json] = {"Swarm": {"LocalNodeState": "active"}}
    (one,) = engine_info.settings(found, in_swarm)
    assert (one.verdict, "carrel pool drain" in one.mend) == (WARNING, True)
    (other,) = engine_info.settings(found, {"Swarm": {"LocalNodeState": "inactive"}})
    assert "daemon.json" in other.mend


def test_homes_without_a_limit_are_a_warning_that_says_why_not() -> None:
    options = docker_options(Settings(), SiteFile())
    assert engine_info.homes(found, options, root=True).verdict is WARNING
    assert "Run Carrel as root" in engine_info.homes(found, options, root=False).mend
    limited = replace(options, home_size=5 * 2**30)
    assert engine_info.homes(found, limited, root=True).verdict is not WARNING


def test_the_number_of_warm_containers_and_why_there_are_none() -> None:
    options = docker_options(Settings(), SiteFile())
    some = engine_info.warm_containers(found, options, 1, root=True)
    assert some.what == "1 container ready for jobs now, at most 2."
    assert "only root" in engine_info.warm_containers(found, options, 0, root=False).what
    none = replace(options, warm=0)
    assert "warm is 0" in engine_info.warm_containers(found, none, 0, root=True).what


def test_versions_are_compared_by_their_numbers() -> None:
    assert engine_info.numbers("20.10.24+dfsg1") == (20, 10)
    assert engine_info.numbers("9.3") < engine_info.OLDEST < engine_info.numbers("28.0.1")
