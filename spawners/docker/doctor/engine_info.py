"""Evaluate the information that an engine returns; pure except for the clock and the homes."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from ....hub.interfaces.backend_settings import DockerOptions
from ....hub.messages import units
from ....hub.records.diagnostics import Finding, Severity
from ....hub.records.json_value import Json
from ...devices import nvidia
from ..engine import cdi

Info = Mapping[str, Json]

OLDEST: Final = (20, 10)
CDI_SINCE: Final = (28, 2)
_MAX_CLOCK_DIFFERENCE_SECONDS: Final = 2.0
_LOOP: Final = Path("/dev/loop-control")
_FOR_HOMES: Final = ("mkfs.ext4", "mount")
_SEARCHED: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_LIMITS: Final = (
    ("MemoryLimit", "memory", Severity.MISSING),
    ("PidsLimit", "processes", Severity.MISSING),
    ("CpuCfsQuota", "processors", Severity.MISSING),
    ("SwapLimit", "swap", Severity.WARNING),
)


class FindingFactory(Protocol):
    """Creates a finding about the checked node."""

    def __call__(self, subject: str, verdict: Severity, what: str, mend: str = "") -> Finding: ...


def version(finding: FindingFactory, info: Info) -> Finding:
    known = str(info.get("ServerVersion"))
    what = f"Docker Engine {known} answers."
    if numbers(known) < OLDEST:
        return finding("engine", Severity.MISSING, what, "Carrel needs 20.10 or newer.")
    return finding("engine", Severity.FINE, what)


def settings(finding: FindingFactory, info: Info) -> Iterator[Finding]:
    """Yield warnings about settings of the engine that work but are not recommended."""
    swarm = info.get("Swarm")
    if isinstance(swarm, dict) and swarm.get("LocalNodeState") == "active":
        yield finding(
            "live-restore",
            Severity.WARNING,
            "A restart of the engine ends every session and job there: in a swarm it cannot keep "
            "them running.",
            "Drain the node before you restart its engine: carrel pool drain NODE.",
        )
    elif not info.get("LiveRestoreEnabled"):
        yield finding(
            "live-restore",
            Severity.WARNING,
            "A restart of the engine ends every session and job.",
            'Put {"live-restore": true} into /etc/docker/daemon.json, so that they keep running.',
        )
    if not info.get("IPv4Forwarding", True):
        yield finding(
            "network",
            Severity.WARNING,
            "IP forwarding is off on this host: containers cannot reach the outside.",
            "sysctl -w net.ipv4.ip_forward=1",
        )
    if info.get("Driver") == "vfs":
        yield finding(
            "storage",
            Severity.WARNING,
            "The storage driver vfs copies a whole image for each container.",
            "Put the engine's data on ext4 or xfs, so that it can use overlay2.",
        )


def clock(finding: FindingFactory, info: Info) -> Finding:
    difference = abs(_timestamp(str(info.get("SystemTime", ""))) - time.time())
    what = f"The engine's clock differs from this machine's by {difference:.1f} s."
    verdict = Severity.WARNING
    if difference < _MAX_CLOCK_DIFFERENCE_SECONDS:
        verdict = Severity.FINE
    return finding("engine's clock", verdict, what, "Run a time service on both.")


def homes(finding: FindingFactory, options: DockerOptions, *, root: bool) -> Finding:
    """Check the size limit of homes."""
    if options.home_size is None:
        mend = 'home_size = "10GiB" below [docker] in carrel.toml.'
        if not root:
            mend = f"Run Carrel as root, because it has to mount homes; then {mend}"
        what = "Homes have no size limit: one user can fill the disk for all."
        return finding("homes", Severity.WARNING, what, mend)
    missing = [name for name in _FOR_HOMES if shutil.which(name, path=_SEARCHED) is None]
    if not _LOOP.exists():
        missing.append(str(_LOOP))
    if missing:
        return finding(
            "homes",
            Severity.MISSING,
            f"Needed for the size limit of homes, but missing here: {', '.join(missing)}.",
            "Install e2fsprogs and mount; load the kernel's loop devices: modprobe loop.",
        )
    what = f"Each home holds at most {units.size(options.home_size)}."
    return finding("homes", Severity.FINE, what)


def warm_containers(
    finding: FindingFactory, options: DockerOptions, number: int, *, root: bool
) -> Finding:
    """Report the current number of warm containers."""
    if not (root and options.warm):
        why = "only root may mount their folders" if options.warm else "[docker] warm is 0"
        return finding("warm containers", Severity.FINE, f"Not used: {why}.")
    what = f"{units.count(number, 'container')} ready for jobs now, at most {options.warm}."
    return finding("warm containers", Severity.FINE, what)


def limits(finding: FindingFactory, info: Info) -> Finding:
    """Check whether a container's resources can be limited."""
    missing = [(name, verdict) for key, name, verdict in _LIMITS if not info.get(key)]
    version = info.get("CgroupVersion", "1")
    if not missing:
        return finding("limits", Severity.FINE, f"Containers can be limited (cgroup v{version}).")
    names = ", ".join(name for name, _ in missing)
    worst = Severity.MISSING if any(v is Severity.MISSING for _, v in missing) else Severity.WARNING
    return finding(
        "limits",
        worst,
        f"The kernel does not limit {names} of a container (cgroup v{version}).",
        "Boot with cgroup_enable=memory swapaccount=1, or use cgroup v2.",
    )


def isolation(finding: FindingFactory, info: Info) -> Finding:
    """Check what isolates a container from its host."""
    reported = info.get("SecurityOptions")
    options = " ".join(map(str, reported)) if isinstance(reported, list) else ""
    if "name=rootless" in options:
        return finding(
            "isolation",
            Severity.MISSING,
            "The engine runs without root, so the firewall rules of containers cannot be set.",
            "Use an engine that runs as root; its containers have no privileges.",
        )
    if "name=userns" in options:
        return finding(
            "isolation",
            Severity.MISSING,
            "The engine gives containers other user ids (userns-remap), so they cannot read their "
            "homes.",
            "Remove userns-remap from /etc/docker/daemon.json: Carrel's containers are not root.",
        )
    if "name=seccomp" not in options or "profile=unconfined" in options:
        return finding(
            "isolation",
            Severity.MISSING,
            "The engine does not filter system calls (seccomp).",
            "Use a kernel with CONFIG_SECCOMP, and the engine's default profile.",
        )
    what = "Containers run without privileges, as a user that is not root, under seccomp."
    return finding("isolation", Severity.FINE, what)


def devices(finding: FindingFactory, info: Info, *, driver: bool) -> Finding:
    """Check whether containers can get NVIDIA devices, if there are any.

    Those of other makers need nothing from the engine.
    """
    by_name = any(name.startswith(f"{nvidia.KIND}=") for name in cdi.listed(info))
    toolkit = nvidia.RUNTIME in cdi.engine_devices(info).runtimes
    if by_name:
        what = "The engine lists NVIDIA devices by name (CDI)."
        return finding("NVIDIA devices", Severity.FINE, what)
    if toolkit:
        newer = (
            ""
            if numbers(str(info.get("ServerVersion"))) < CDI_SINCE
            else " The engine could list them by name (CDI)."
        )
        what = f"The NVIDIA container toolkit is installed; devices are given by UUID.{newer}"
        return finding("NVIDIA devices", Severity.FINE, what)
    if driver:
        return finding(
            "NVIDIA devices",
            Severity.MISSING,
            "This machine has an NVIDIA driver, but the engine cannot give devices to containers.",
            "Install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; "
            "systemctl restart docker.",
        )
    what = "No NVIDIA container toolkit: containers get no NVIDIA devices here."
    return finding("NVIDIA devices", Severity.FINE, what)


def numbers(version: str) -> tuple[int, ...]:
    """Parse a version: ``20.10.24+dfsg1`` is (20, 10)."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _timestamp(text: str) -> float:
    """Parse a time with nanoseconds; 0 if it is malformed."""
    match = re.fullmatch(r"(.*?)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if match is None:
        return 0.0
    return datetime.fromisoformat(match[1] + match[2]).timestamp()
