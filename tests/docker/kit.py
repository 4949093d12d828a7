"""An installation on a real engine: its backend, a service that containers reach, and orders."""

from __future__ import annotations

import itertools
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import docker
from nbformat import NotebookNode

from carrel.hub.errors import CarrelError
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from carrel.hub.records.requests import JobSpec
from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.docker.backend import DockerBackend
from carrel.spawners.docker.containers.firewall import Firewall
from carrel.spawners.docker.containers.late_mounts import late_mounts_of
from carrel.spawners.docker.containers.networks import Networks
from carrel.spawners.docker.containers.template import LABEL, WARM
from carrel.spawners.docker.engine.client import DockerClient
from carrel.spawners.docker.host import free_range, used_networks
from carrel.spawners.docker.nodes.node import firewall_rules

from ..e2e.support import eventually
from ..spawners.fake_service import FakeService
from ..spawners.notebooks import text_of

MIB = 1 << 20
_numbers = itertools.count(1)


@dataclass(slots=True, kw_only=True)
class Site:
    """An installation of one test."""

    folder: Path
    settings: BackendSettings
    options: DockerOptions
    service: FakeService
    backend: DockerBackend
    image: str
    leases: list[str] = field(default_factory=list)

    @property
    def engine(self) -> DockerClient:
        return DockerClient(self.options.hosts[0])

    @property
    def api(self) -> docker.APIClient:
        return docker.APIClient(self.options.hosts[0].url, version="auto", timeout=30)

    def warm(self, number: int = 1) -> tuple[str, ...]:
        """Have so many containers wait for jobs; their ids."""
        image = self.backend.digest_of("")
        for _ in range(number):
            self.backend.warm.expect(image)

        def are_ready() -> bool:
            # Repeated, as the service does: a container is due only a moment after a job's start.
            self.backend.remove_orphans(lambda: frozenset(self.leases))
            return self.backend.warm.ready_count() >= number

        eventually(are_ready, f"{number} warm containers wait")
        waiting = {LABEL: self.settings.installation, WARM: ""}
        return tuple(each.id for each in self.engine.containers(waiting))

    def again(self) -> DockerBackend:
        """The backend of a service that was started anew."""
        return DockerBackend(self.settings)

    def order(
        self,
        notebook: NotebookNode | str = "",
        *,
        command: tuple[str, ...] = (),
        devices: tuple[Device, ...] = (),
        owner: str = "student1",
        internet: bool = True,
        image: str = "",
        node: str = "",
    ) -> LaunchOrder:
        request = f"j-{self.settings.installation}-{next(_numbers)}"
        place = self.folder / "outputs" / request
        home = self.folder / "homes" / owner
        folder = place / "1"
        for each in (folder, home):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = notebook if isinstance(notebook, str) else text_of(notebook)
        (place / "input.ipynb").write_text(text)
        self.leases.append(f"{request}.1")
        return LaunchOrder(
            lease_id=f"{request}.1",
            request_id=request,
            epoch=1,
            owner=owner,
            devices=devices,
            job=JobSpec(
                notebook_name="" if command else "train.ipynb",
                output_name="" if command else "out.ipynb",
                command=command,
                internet=internet,
            ),
            seconds=600,
            token="the-token",
            folder=folder,
            input_path=place / "input.ipynb",
            home=home,
            image=image,
            node=node,
        )

    def log(self, order: LaunchOrder) -> str:
        path = order.folder / "log.txt"
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        """Leave nothing on the engine."""
        installation = self.settings.installation
        for host in self.options.hosts:
            engine = DockerClient(host)
            for each in engine.containers({LABEL: installation}):
                engine.remove(each.id)
            for network in engine.networks(f"{LABEL}={installation}"):
                engine.remove_network(network.id)
            # Perhaps the backend was just about to set the rules.
            eventually(lambda engine=engine: self._unguarded(engine), "the rules are removed")
        late_mounts_of(self.settings).release()

    def _unguarded(self, engine: DockerClient) -> bool:
        guard = Firewall(
            engine=engine,
            rules=firewall_rules(self.settings.installation, self.options, self.options.hosts[0]),
        )
        try:
            guard.remove(self.image)
        except CarrelError:
            return False
        return True


def make_site(
    folder: Path,
    hosts: tuple[DockerHost, ...],
    image: str,
    *,
    memory: int = 512 * MIB,
    warm: int = 0,
) -> Site:
    """``image``: the id of the base image, on every one of the hosts."""
    installation = secrets.token_hex(3)
    first = DockerClient(hosts[0])
    subnets = free_range(used_networks(first), installation)
    networks = Networks(engine=first, installation=installation, subnets=subnets)
    service = FakeService(networks.ensure_hub()).up()
    options = DockerOptions(
        hosts=hosts,
        subnets=subnets,
        internal_ip=networks.gateway(0),
        hub_port=service.port,
        service_port=service.port,
        image="base",
        uid=1000,
        memory=memory,
        cpus=2.0,
        pids=128,
        tmp=64 * MIB,
        warm=warm,
    )
    settings = BackendSettings(
        state=folder,
        service_url=service.url,
        simulated_devices=2,
        installation=installation,
        docker=options,
    )
    return Site(
        folder=folder,
        settings=settings,
        options=options,
        service=service,
        backend=DockerBackend(settings),
        image=image,
    )
