"""What ``carrel doctor`` looks at in one Docker engine, most of it in what the engine tells."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from ...hub import wording
from ...hub.config import write_private
from ...hub.errors import BackendFailed, Unavailable
from ...hub.ports.backend import BackendSettings, DockerHost, DockerOptions
from ...hub.ports.ground import Finding, Verdict
from ...hub.ports.records import Json
from . import guard
from .engine import Engine
from .images import digest_of, images_on
from .ranges import taken
from .template import KIND, LABEL

Info = Mapping[str, Json]

OLDEST: Final = (20, 10)
CDI_SINCE: Final = (28, 2)
_APART_SECONDS: Final = 2.0
_FEW_BYTES: Final = 10 << 30
_DRIVER: Final = Path("/proc/driver/nvidia")
_LOOP: Final = Path("/dev/loop-control")
_FOR_HOMES: Final = ("mkfs.ext4", "mount")
_SEARCHED: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_LIMITS: Final = (
    ("MemoryLimit", "memory", Verdict.MISSING),
    ("PidsLimit", "processes", Verdict.MISSING),
    ("CpuCfsQuota", "processors", Verdict.MISSING),
    ("SwapLimit", "swap", Verdict.WARNING),
)


class Found(Protocol):
    """Makes a finding about the node that is being looked at."""

    def __call__(self, subject: str, verdict: Verdict, what: str, mend: str = "") -> Finding: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Looks at the engine of one node."""

    engine: Engine
    host: DockerHost
    settings: BackendSettings

    def findings(self) -> Iterator[Finding]:
        try:
            info = self.engine.info()
        except Unavailable as error:
            yield self._silent(error)
            return
        yield self._version(info)
        yield from self._of_info(info)
        yield self._clock(info)
        if self._here:
            yield self._disk(info)
            yield self._ranges()
            yield homes(self._found, self._options, root=os.geteuid() == 0)
        try:
            image = digest_of(
                images_on(self.engine, self._options.image),
                "",
                default=self._options.image,
                node=self.host.node,
            )
        except BackendFailed as error:
            yield self._found("image", Verdict.MISSING, error.message, error.accepted)
            return
        yield self._firewall(image)
        if not self._here:
            yield self._shared_state(image)

    @property
    def _options(self) -> DockerOptions:
        assert self.settings.docker is not None
        return self.settings.docker

    @property
    def _here(self) -> bool:
        return self.host.url.startswith("unix://")

    def _found(self, subject: str, verdict: Verdict, what: str, mend: str = "") -> Finding:
        node = "" if self.host.node == self._options.hosts[0].node else f"{self.host.node}: "
        return Finding(
            subject=f"{node}{subject}",
            verdict=verdict,
            what=what,
            mend="" if verdict is Verdict.FINE else mend,
        )

    def _silent(self, error: Unavailable) -> Finding:
        mend = "Start it there, and let this account in: ssh keys, or the files of TLS."
        if self._here:
            mend = (
                "Install it (Debian's package docker.io) and start it: systemctl start docker. "
                "An account that is not root has to be in the group docker."
            )
        what = f"{error.message} It was looked for at {self.host.url}."
        return self._found("engine", Verdict.MISSING, what, mend)

    def _version(self, info: Info) -> Finding:
        version = str(info.get("ServerVersion"))
        what = f"Docker Engine {version} answers."
        if numbers(version) < OLDEST:
            return self._found("engine", Verdict.MISSING, what, "Carrel needs 20.10 or newer.")
        return self._found("engine", Verdict.FINE, what)

    def _of_info(self, info: Info) -> Iterator[Finding]:
        yield limits(self._found, info)
        yield isolation(self._found, info)
        yield devices(self._found, info, driver=self._here and _DRIVER.exists())
        if not info.get("LiveRestoreEnabled"):
            yield self._found(
                "live-restore",
                Verdict.WARNING,
                "When the engine is restarted, every session and job ends with it.",
                'Put {"live-restore": true} into /etc/docker/daemon.json: they live on then.',
            )
        if not info.get("IPv4Forwarding", True):
            yield self._found(
                "network",
                Verdict.WARNING,
                "This host passes nothing on: containers reach nothing outside.",
                "sysctl -w net.ipv4.ip_forward=1",
            )
        if info.get("Driver") == "vfs":
            yield self._found(
                "storage",
                Verdict.WARNING,
                "The storage driver vfs copies a whole image for each container.",
                "Put the engine's data on ext4 or xfs, so that it takes overlay2.",
            )

    def _clock(self, info: Info) -> Finding:
        told = str(info.get("SystemTime", ""))
        apart = abs(_moment(told) - time.time())
        what = f"The clock of the engine is {apart:.1f} s away from this one."
        verdict = Verdict.FINE if apart < _APART_SECONDS else Verdict.WARNING
        return self._found("engine's clock", verdict, what, "Run a time service on both.")

    def _disk(self, info: Info) -> Finding:
        root = Path(str(info.get("DockerRootDir", "")))
        try:
            free = shutil.disk_usage(root).free
        except OSError:
            what = f"Only root can see how much room there is in {root}."
            return self._found("engine's disk", Verdict.UNKNOWN, what, f"df -h {root}")
        verdict = Verdict.FINE if free >= _FEW_BYTES else Verdict.WARNING
        what = f"{wording.size(free)} are free for images and containers in {root}."
        return self._found("engine's disk", verdict, what, "carrel images prune")

    def _ranges(self) -> Finding:
        if not self._options.subnets:
            what = "A free range for networks is chosen at the first start."
            return self._found("networks", Verdict.FINE, what)
        mine = ipaddress.IPv4Network(self._options.subnets)
        others = [
            each for each in taken(self.engine) if each.overlaps(mine) and not each.subnet_of(mine)
        ]
        if others:
            return self._found(
                "networks",
                Verdict.MISSING,
                f"The networks of this installation ({mine}) overlap {others[0]}, which this "
                "host reaches otherwise.",
                "carrel down; take docker_subnets out of settings.json; carrel up.",
            )
        return self._found("networks", Verdict.FINE, f"{mine} overlaps nothing else.")

    def _firewall(self, image: str) -> Finding:
        """Whether the rules could be set: they are checked by the kernel, and not set."""
        wall = guard.Wall(
            installation=self.settings.installation,
            address=self._options.internal_ip,
            ports=(self._options.hub_port, self._options.service_port),
        )
        body = {
            **guard.body(wall, image, ""),
            "Cmd": ["/usr/sbin/nft", "--check", guard.rules(wall)],
        }
        try:
            status, said = self.engine.run_once(self._probe_name(), body)
        except BackendFailed as error:
            return self._found("firewall", Verdict.MISSING, error.message, error.accepted)
        if status == 0:
            what = "Rules that keep containers apart can be set (nftables)."
            return self._found("firewall", Verdict.FINE, what)
        first = said.strip().splitlines()[:1] or ["it said nothing"]
        return self._found(
            "firewall",
            Verdict.MISSING,
            f"Rules that keep containers apart cannot be set: {first[0]}. Nothing starts then.",
            "Load the kernel's nf_tables: modprobe nf_tables nft_ct.",
        )

    def _shared_state(self, image: str) -> Finding:
        """A file that is written here has to be there, at the same path."""
        outputs = self.settings.state / "outputs"
        outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
        token = secrets.token_hex(16)
        probe = outputs / f".probe-{token[:8]}"
        write_private(probe, token)
        probe.chmod(0o644)
        mount: Json = {"Type": "bind", "Source": str(probe), "Target": "/probe", "ReadOnly": True}
        body: dict[str, Json] = {
            "Image": image,
            "Entrypoint": [],
            "Cmd": ["cat", "/probe"],
            "Labels": {LABEL: self.settings.installation, KIND: "probe"},
            "HostConfig": {"NetworkMode": "none", "CapDrop": ["ALL"], "Mounts": [mount]},
        }
        try:
            _, said = self.engine.run_once(self._probe_name(), body)
        except BackendFailed as error:
            said = error.message
        finally:
            probe.unlink()
        if token in said:
            what = f"{self.settings.state} is shared with this machine."
            return self._found("shared state", Verdict.FINE, what)
        return self._found(
            "shared state",
            Verdict.MISSING,
            f"A file written here is not there under {outputs}: {said.strip()[:200]}",
            f"Export {self.settings.state} and mount it there at the same path (NFS).",
        )

    def _probe_name(self) -> str:
        return f"carrel-{self.settings.installation}-probe-{secrets.token_hex(4)}"


def homes(found: Found, options: DockerOptions, *, root: bool) -> Finding:
    """Whether one person can fill the disk of all."""
    if options.home_size is None:
        mend = 'home_size = "10GiB" below [docker] in carrel.toml.'
        if not root:
            mend = f"Run Carrel as root, which mounting takes; then {mend}"
        what = "Homes have no limit: one person can fill the disk of all."
        return found("homes", Verdict.WARNING, what, mend)
    lacking = [name for name in _FOR_HOMES if shutil.which(name, path=_SEARCHED) is None]
    if not _LOOP.exists():
        lacking.append(str(_LOOP))
    if lacking:
        return found(
            "homes",
            Verdict.MISSING,
            f"Homes have a size, and what makes it hold is missing: {', '.join(lacking)}.",
            "Install e2fsprogs and mount; load the kernel's loop devices: modprobe loop.",
        )
    what = f"Each home holds {wording.size(options.home_size)}, and no more."
    return found("homes", Verdict.FINE, what)


def limits(found: Found, info: Info) -> Finding:
    """Whether a container can be kept from taking the whole machine."""
    lacking = [(name, verdict) for key, name, verdict in _LIMITS if not info.get(key)]
    version = info.get("CgroupVersion", "1")
    if not lacking:
        return found("limits", Verdict.FINE, f"Containers can be limited (cgroup v{version}).")
    names = ", ".join(name for name, _ in lacking)
    worst = Verdict.MISSING if any(v is Verdict.MISSING for _, v in lacking) else Verdict.WARNING
    return found(
        "limits",
        worst,
        f"The kernel does not limit {names} of a container (cgroup v{version}).",
        "Boot with cgroup_enable=memory swapaccount=1, or use cgroup v2.",
    )


def isolation(found: Found, info: Info) -> Finding:
    """What stands between a container and its host."""
    said = info.get("SecurityOptions")
    options = " ".join(map(str, said)) if isinstance(said, list) else ""
    if "name=rootless" in options:
        return found(
            "isolation",
            Verdict.MISSING,
            "The engine runs without root, so that the rules between containers cannot be set.",
            "Use an engine that runs as root; containers have no privilege in it.",
        )
    if "name=userns" in options:
        return found(
            "isolation",
            Verdict.MISSING,
            "The engine gives containers other user ids (userns-remap): they could not read their "
            "homes.",
            "Take userns-remap out of /etc/docker/daemon.json: containers are not root here.",
        )
    if "name=seccomp" not in options or "profile=unconfined" in options:
        return found(
            "isolation",
            Verdict.MISSING,
            "The engine filters no system calls (seccomp).",
            "Use a kernel with CONFIG_SECCOMP, and the engine's default profile.",
        )
    what = "Containers run without privileges, as a user that is not root, under seccomp."
    return found("isolation", Verdict.FINE, what)


def devices(found: Found, info: Info, *, driver: bool) -> Finding:
    """Whether containers can be given GPUs, where there are any."""
    listed = info.get("DiscoveredDevices")
    cdi = isinstance(listed, list) and any("nvidia.com/gpu" in str(each) for each in listed)
    runtimes = info.get("Runtimes")
    toolkit = isinstance(runtimes, Mapping) and "nvidia" in runtimes
    if cdi:
        return found("GPUs", Verdict.FINE, "The engine lists NVIDIA devices by name (CDI).")
    if toolkit:
        version = str(info.get("ServerVersion"))
        newer = "" if numbers(version) < CDI_SINCE else " It could list them by name (CDI)."
        what = f"The NVIDIA container toolkit is there; devices are given by UUID.{newer}"
        return found("GPUs", Verdict.FINE, what)
    if driver:
        return found(
            "GPUs",
            Verdict.MISSING,
            "This machine has an NVIDIA driver, and the engine cannot give its devices.",
            "Install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; "
            "systemctl restart docker.",
        )
    what = "No NVIDIA container toolkit: sessions and jobs run on CPU, or on simulated devices."
    return found("GPUs", Verdict.FINE, what)


def numbers(version: str) -> tuple[int, ...]:
    """``20.10.24+dfsg1`` is (20, 10)."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:2])


def _moment(text: str) -> float:
    """Of a time with nanoseconds; 0 for what is none."""
    found = re.fullmatch(r"(.*?)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if found is None:
        return 0.0
    return datetime.fromisoformat(found[1] + found[2]).timestamp()
