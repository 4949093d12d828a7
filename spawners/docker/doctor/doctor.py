"""Check one Docker engine for ``carrel doctor``.

``engine_info`` evaluates the information that the engine returns; ``container_trials`` runs the
checks that need a container on its machine.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from ....hub.messages import units
from ....hub.records.diagnostics import Finding, Severity
from ..containers.subnets import has_address, used_networks
from ..containers.template import LABEL, WARM, lease_of
from ..engine.client import DockerClient
from ..engine.images import digest_of, images_on, tools_image
from . import engine_info
from .container_trials import Trials
from .engine_info import Info

_FEW_BYTES: Final = 10 << 30
_DRIVER: Final = Path("/proc/driver/nvidia")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Checks the engine of one node."""

    engine: DockerClient
    host: DockerHost
    settings: BackendSettings

    def findings(self) -> Iterator[Finding]:
        try:
            info = self.engine.info()
        except Unavailable as error:
            yield self._no_answer(error)
            return
        driver = self._first and _DRIVER.exists()
        yield engine_info.version(self._finding, info)
        yield engine_info.limits(self._finding, info)
        yield engine_info.isolation(self._finding, info)
        yield engine_info.devices(self._finding, info, driver=driver)
        yield from engine_info.settings(self._finding, info)
        yield engine_info.clock(self._finding, info)
        if self._first:
            yield self._disk(info)
            yield self._ranges()
            yield from self._address()
            root = os.geteuid() == 0
            yield engine_info.homes(self._finding, self._options, root=root)
            yield engine_info.warm_containers(
                self._finding, self._options, self._ready(), root=root
            )
        yield from self._container_findings()

    def _container_findings(self) -> Iterator[Finding]:
        default = self._options.image
        try:
            known = images_on(self.engine, default)
            digest_of(known, "", node=self.host.node)
            image = tools_image(known, node=self.host.node)
        except BackendFailed as error:
            yield self._finding("image", Severity.MISSING, error.message, error.accepted)
            return
        trials = Trials(
            engine=self.engine,
            host=self.host,
            settings=self.settings,
            options=self._options,
            image=image,
            finding=self._finding,
        )
        yield trials.firewall()
        if not self._first:
            yield trials.shared_folders()
        if self.host.address and has_address(self._options.address):
            yield from trials.connections()

    @property
    def _options(self) -> DockerOptions:
        assert self.settings.docker is not None
        return self.settings.docker

    @property
    def _first(self) -> bool:
        """Whether this is the engine of this machine."""
        return self.host == self._options.hosts[0]

    def _finding(self, subject: str, verdict: Severity, what: str, mend: str = "") -> Finding:
        node = "" if self._first else f"{self.host.node}: "
        return Finding(
            subject=f"{node}{subject}",
            verdict=verdict,
            what=what,
            mend="" if verdict is Severity.FINE else mend,
        )

    def _no_answer(self, error: Unavailable) -> Finding:
        mend = "Start it there, and give this account access: ssh keys, or TLS certificates."
        if self._first:
            mend = (
                "Install it (Debian's package docker.io) and start it: systemctl start docker. "
                "An account other than root must be in the group docker."
            )
        what = f"{error.message} Its address is {self.host.url}."
        return self._finding("engine", Severity.MISSING, what, mend)

    def _disk(self, info: Info) -> Finding:
        root = Path(str(info.get("DockerRootDir", "")))
        try:
            free = shutil.disk_usage(root).free
        except OSError:
            what = f"Only root can see how much space is free in {root}."
            return self._finding("engine's disk", Severity.UNKNOWN, what, f"df -h {root}")
        verdict = Severity.FINE if free >= _FEW_BYTES else Severity.WARNING
        what = f"{units.size(free)} are free for images and containers in {root}."
        return self._finding("engine's disk", verdict, what, "carrel images prune")

    def _ready(self) -> int:
        """Return the number of warm containers; a running service creates them."""
        containers = self.engine.containers({LABEL: self.settings.installation, WARM: ""})
        return sum(
            container.running and not lease_of(container.name, container.labels)
            for container in containers
        )

    def _ranges(self) -> Finding:
        if not self._options.subnets:
            what = "A free range for networks is chosen at the first start."
            return self._finding("networks", Severity.FINE, what)
        own = ipaddress.IPv4Network(self._options.subnets)
        others = [
            network
            for network in used_networks(self.engine)
            if network.overlaps(own) and not network.subnet_of(own)
        ]
        if others:
            return self._finding(
                "networks",
                Severity.MISSING,
                f"The networks of this installation ({own}) overlap {others[0]}, another "
                "network of this host.",
                "carrel down; remove docker_subnets from settings.json; carrel up.",
            )
        return self._finding("networks", Severity.FINE, f"{own} overlaps no other network.")

    def _address(self) -> Iterator[Finding]:
        """Check the address at which other machines reach this one, if it is set."""
        address = self._options.address
        if address and not has_address(address):
            what = f"This machine does not have the address {address} of carrel.toml."
            mend = "Set an address from `ip address` that the other nodes reach."
            yield self._finding("address", Severity.MISSING, what, mend)
