"""The settings that a backend is created with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

COURSES = "/course"
"""The mount point of course data in containers and grading sandboxes."""


COURSE_DATA = "CARREL_COURSE_DATA"
"""The environment variable with the folder of the course data; set only if the course has data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerHost:
    """The Docker engine of one node.

    Attributes:
        node: the name of the node in the pool; ``local`` for this machine.
        url: ``unix://…``, ``ssh://…`` or ``tcp://…``.
        address: the IP address of another node, as this machine reaches it.
        tls_ca, tls_cert, tls_key: paths of the TLS files for a ``tcp://`` URL.
    """

    node: str
    url: str
    address: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerOptions:
    """The container settings of an installation.

    Attributes:
        hosts: the Docker engines, that of this machine first.
        subnets: the address range for the networks of the installation; empty until one is chosen.
        internal_ip, hub_port, service_port: the only addresses of this host that containers can
            reach.
        image: the name of the default image; empty for the built-in default.
        uid: user and group id in containers; that of the service unless the service runs as root.
        memory, cpus, pids, tmp: limits of each container; memory and tmp in bytes.
        warm: the maximum number of warm containers for jobs.
        home_size: the size of each home in bytes; None for no limit.
        blocked: networks that containers cannot reach, in addition to those that are always
            blocked.
        address: the IP address of this host, as other nodes reach it; empty without other nodes.
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
        """User and group id that own homes and attempt folders; None unless the service is root."""
        return (self.uid, self.uid) if os.geteuid() == 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmImage:
    """A build of an image for the containers of a Slurm cluster.

    Attributes:
        source: what the container program gets: the path of a file, or an address with a digest.
        digest: ``sha256:`` and 64 hexadecimal digits, of the file or in the address.
        kernels: names of kernels that it has in addition to those of Carrel's environment.
    """

    name: str
    source: str
    digest: str
    built_at: float
    title: str = ""
    kernels: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """The settings of all jobs of an installation on a Slurm cluster.

    Attributes:
        conf: the path of slurm.conf; empty for the default of Slurm's commands.
        address: the IP address of this machine, as the nodes reach it.
        partition, account, qos: of all jobs; empty for the defaults of the cluster. Without a
            partition, the nodes of all of them form the pool.
        cpus: CPUs of each session and job.
        memory: of each session and job, in bytes; 0 for the default of the cluster.
        options: further options of ``sbatch``.
        prologue: shell lines that run before each session and job.
        container: a command that runs each session and job in a container, before their own.
        images: builds that users choose from, the default one first; the chosen one replaces
            ``{image}`` in ``container`` and ``options``.
        mirror: whether jobs are charged to the accounts of their groups, instead of ``account``.
        simulated: the types of devices that are simulated.
        device_memory: memory of a device in bytes, by type.
        untyped: the model of devices without a type.
    """

    conf: str = ""
    address: str = ""
    partition: str = ""
    account: str = ""
    qos: str = ""
    cpus: int = 2
    memory: int = 0
    options: tuple[str, ...] = ()
    prologue: str = ""
    container: tuple[str, ...] = ()
    images: tuple[SlurmImage, ...] = ()
    mirror: bool = False
    simulated: tuple[str, ...] = ()
    device_memory: Mapping[str, int] = field(default_factory=dict)
    untyped: str = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """The settings that every backend is created with.

    Attributes:
        state: the state folder.
        service_url: the URL that attempts report to, without a trailing slash
            (``http://127.0.0.1:PORT/services/carrel``).
        simulated_devices: the number of simulated devices; None uses the devices that the driver
            reports, which may be none.
        installation: an id that marks the objects of this installation on a shared engine.
        docker: settings of the Docker backend; None for other backends.
        slurm: settings of the Slurm backend; None for other backends.
    """

    state: Path
    service_url: str
    simulated_devices: int | None = None
    installation: str = ""
    docker: DockerOptions | None = None
    slurm: SlurmOptions | None = None
