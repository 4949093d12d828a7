"""The settings that a backend is created with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

COURSES = "/course"
"""Where the data of courses appear in containers, and in grading sandboxes."""


COURSE_DATA = "CARREL_COURSE_DATA"
"""In the environment of what runs for a course that has data: the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerHost:
    """One engine of the pool.

    Attributes:
        node: how the pool calls its machine; ``local`` for this one.
        url: ``unix://…``, ``ssh://…`` or ``tcp://…``; the files of TLS belong to the last.
        address: of another machine, as this one reaches it.
    """

    node: str
    url: str
    address: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerOptions:
    """What holds for the containers of an installation, as its administrator set it.

    Attributes:
        hosts: this machine's engine first.
        subnets: the range that the installation's networks are cut from; empty before one was
            chosen.
        internal_ip, hub_port, service_port: all of this host that a container reaches.
        image: name of the image of who chooses none; empty for the usual one.
        uid: user and group id inside: the service's own where that is not root.
        memory, cpus, pids, tmp: of each container; memory and tmp in bytes.
        warm: how many containers may wait for jobs.
        home_size: bytes of each home; None for no limit.
        blocked: networks that no container reaches, beside those that none ever reaches.
        address: of this host, as other machines of the pool reach it; empty without any.
    """

    hosts: tuple[DockerHost, ...]
    subnets: str
    internal_ip: str
    hub_port: int
    service_port: int
    image: str
    uid: int
    memory: int
    cpus: float
    pids: int
    tmp: int
    warm: int = 0
    home_size: int | None = None
    blocked: tuple[str, ...] = ()
    address: str = ""

    @property
    def owner(self) -> tuple[int, int] | None:
        """Whom a service gives homes and attempts to; None where it cannot give any away."""
        return (self.uid, self.uid) if os.geteuid() == 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """What a backend is made from.

    Attributes:
        state: the state folder.
        service_url: where an attempt reports to, without a trailing slash
            (``http://127.0.0.1:PORT/services/carrel``).
        simulated_devices: how many to pretend; None asks the driver, and where that finds
            nothing there is no device.
        installation: what tells its things on an engine from those of another installation.
        docker: for the engine of containers.
    """

    state: Path
    service_url: str
    simulated_devices: int | None = None
    installation: str = ""
    docker: DockerOptions | None = None
