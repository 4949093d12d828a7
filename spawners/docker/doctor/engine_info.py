"""What an engine tells about itself, and what that means for Carrel: pure, but for the homes."""

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
from ..engine import cdi

Info = Mapping[str, Json]

OLDEST: Final = (20, 10)
CDI_SINCE: Final = (28, 2)
_APART_SECONDS: Final = 2.0
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
    """Makes a finding about the node that is being looked at."""

    def __call__(self, subject: str, verdict: Severity, what: str, mend: str = "") -> Finding: ...


def version(found: FindingFactory, info: Info) -> Finding:
    known = str(info.get("ServerVersion"))
    what = f"Docker Engine {known} answers."
    if numbers(known) < OLDEST:
        return found("engine", Severity.MISSING, what, "Carrel needs 20.10 or newer.")
    return found("engine", Severity.FINE, what)


def habits(found: FindingFactory, info: Info) -> Iterator[Finding]:
    """What it does in a way that is not the best; nothing where there is nothing to say."""
    if not info.get("LiveRestoreEnabled"):
        yield found(
            "live-restore",
            Severity.WARNING,
            "When the engine is restarted, every session and job ends with it.",
            'Put {"live-restore": true} into /etc/docker/daemon.json: they live on then.',
        )
    if not info.get("IPv4Forwarding", True):
        yield found(
            "network",
            Severity.WARNING,
            "This host passes nothing on: containers reach nothing outside.",
            "sysctl -w net.ipv4.ip_forward=1",
        )
    if info.get("Driver") == "vfs":
        yield found(
            "storage",
            Severity.WARNING,
            "The storage driver vfs copies a whole image for each container.",
            "Put the engine's data on ext4 or xfs, so that it takes overlay2.",
        )


def clock(found: FindingFactory, info: Info) -> Finding:
    apart = abs(_moment(str(info.get("SystemTime", ""))) - time.time())
    what = f"The clock of the engine is {apart:.1f} s away from this one."
    verdict = Severity.FINE if apart < _APART_SECONDS else Severity.WARNING
    return found("engine's clock", verdict, what, "Run a time service on both.")


def homes(found: FindingFactory, options: DockerOptions, *, root: bool) -> Finding:
    """Whether one person can fill the disk of all."""
    if options.home_size is None:
        mend = 'home_size = "10GiB" below [docker] in carrel.toml.'
        if not root:
            mend = f"Run Carrel as root, which mounting takes; then {mend}"
        what = "Homes have no limit: one person can fill the disk of all."
        return found("homes", Severity.WARNING, what, mend)
    lacking = [name for name in _FOR_HOMES if shutil.which(name, path=_SEARCHED) is None]
    if not _LOOP.exists():
        lacking.append(str(_LOOP))
    if lacking:
        return found(
            "homes",
            Severity.MISSING,
            f"Homes have a size, and what makes it hold is missing: {', '.join(lacking)}.",
            "Install e2fsprogs and mount; load the kernel's loop devices: modprobe loop.",
        )
    what = f"Each home holds {units.size(options.home_size)}, and no more."
    return found("homes", Severity.FINE, what)


def waiting(found: FindingFactory, options: DockerOptions, number: int, *, root: bool) -> Finding:
    """How many containers are ready for jobs now."""
    if not (root and options.warm):
        why = "only root may mount their folders" if options.warm else "[docker] warm is 0"
        return found("small jobs", Severity.FINE, f"No container waits for them: {why}.")
    now = f"{units.count(number, 'container')} {'waits' if number == 1 else 'wait'} for them now"
    return found("small jobs", Severity.FINE, f"{now}, at most {options.warm} do.")


def limits(found: FindingFactory, info: Info) -> Finding:
    """Whether a container can be kept from taking the whole machine."""
    lacking = [(name, verdict) for key, name, verdict in _LIMITS if not info.get(key)]
    version = info.get("CgroupVersion", "1")
    if not lacking:
        return found("limits", Severity.FINE, f"Containers can be limited (cgroup v{version}).")
    names = ", ".join(name for name, _ in lacking)
    worst = Severity.MISSING if any(v is Severity.MISSING for _, v in lacking) else Severity.WARNING
    return found(
        "limits",
        worst,
        f"The kernel does not limit {names} of a container (cgroup v{version}).",
        "Boot with cgroup_enable=memory swapaccount=1, or use cgroup v2.",
    )


def isolation(found: FindingFactory, info: Info) -> Finding:
    """What stands between a container and its host."""
    said = info.get("SecurityOptions")
    options = " ".join(map(str, said)) if isinstance(said, list) else ""
    if "name=rootless" in options:
        return found(
            "isolation",
            Severity.MISSING,
            "The engine runs without root, so that the rules between containers cannot be set.",
            "Use an engine that runs as root; containers have no privilege in it.",
        )
    if "name=userns" in options:
        return found(
            "isolation",
            Severity.MISSING,
            "The engine gives containers other user ids (userns-remap): they could not read their "
            "homes.",
            "Take userns-remap out of /etc/docker/daemon.json: containers are not root here.",
        )
    if "name=seccomp" not in options or "profile=unconfined" in options:
        return found(
            "isolation",
            Severity.MISSING,
            "The engine filters no system calls (seccomp).",
            "Use a kernel with CONFIG_SECCOMP, and the engine's default profile.",
        )
    what = "Containers run without privileges, as a user that is not root, under seccomp."
    return found("isolation", Severity.FINE, what)


def devices(found: FindingFactory, info: Info, *, driver: bool) -> Finding:
    """Whether containers can be given GPUs, where there are any."""
    by_name = any(each.startswith(f"{cdi.GPU}=") for each in cdi.listed(info))
    runtimes = info.get("Runtimes")
    toolkit = isinstance(runtimes, Mapping) and "nvidia" in runtimes
    if by_name:
        return found("GPUs", Severity.FINE, "The engine lists NVIDIA devices by name (CDI).")
    if toolkit:
        newer = (
            ""
            if numbers(str(info.get("ServerVersion"))) < CDI_SINCE
            else " It could list them by name (CDI)."
        )
        what = f"The NVIDIA container toolkit is there; devices are given by UUID.{newer}"
        return found("GPUs", Severity.FINE, what)
    if driver:
        return found(
            "GPUs",
            Severity.MISSING,
            "This machine has an NVIDIA driver, and the engine cannot give its devices.",
            "Install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; "
            "systemctl restart docker.",
        )
    what = "No NVIDIA container toolkit: sessions and jobs run on CPU, or on simulated devices."
    return found("GPUs", Severity.FINE, what)


def numbers(version: str) -> tuple[int, ...]:
    """``20.10.24+dfsg1`` is (20, 10)."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:2])


def _moment(text: str) -> float:
    """Of a time with nanoseconds; 0 for what is none."""
    found = re.fullmatch(r"(.*?)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if found is None:
        return 0.0
    return datetime.fromisoformat(found[1] + found[2]).timestamp()
