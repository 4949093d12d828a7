"""The site file STATE/carrel.toml: the administrator's configuration of engine and nodes.

    engine = "docker"

    [docker]
    memory = "8GiB"
    address = "10.1.2.3"

    [[nodes]]
    name = "gpu1"
    docker_host = "ssh://carrel@gpu1.example.org"
    address = "10.1.2.4"

The file is optional: all keys have defaults for a single machine. Unknown keys and invalid values
are reported with what is accepted, and nothing starts.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from ..errors import InvalidInput
from .notification_table import NotificationTable
from .open_link_table import OpenLinkTable
from .settings import EngineKind
from .state_folder import StateFolder

MIB = 1024 * 1024
LOCAL_NODE = "local"
_SCHEMES = ("unix://", "tcp://", "ssh://")
_OWN_OPTIONS = (
    "--array",
    "--chdir",
    "--comment",
    "--cpus-per-task",
    "--export",
    "--gres",
    "--input",
    "--job-name",
    "--mem",
    "--nodelist",
    "--nodes",
    "--ntasks",
    "--ntasks-per-node",
    "--output",
    "--requeue",
    "--time",
    "--uid",
    "--wrap",
)


def _docker_host(text: str) -> str:
    if text and not text.startswith(_SCHEMES):
        raise ValueError(f"must begin with one of {', '.join(_SCHEMES)}")
    return text


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text))


def _address(text: str) -> str:
    return str(ipaddress.IPv4Address(text)) if text else ""


DockerHost = Annotated[str, AfterValidator(_docker_host)]
Address = Annotated[str, AfterValidator(_address)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DockerTable(_Table):
    """The table ``[docker]``: settings of all containers of the installation.

    Attributes:
        host: the Docker engine of this machine; by default DOCKER_HOST of `carrel up` or of its
            last start, else the default socket.
        image: the name of the default image; if not set, datascience if it is built, else base.
        uid: user and group id inside containers.
        memory: memory limit of each session and job, in bytes; a process that exceeds it is ended
            with that reason.
        cpus: CPU limit of each session and job, in cores.
        pids: limit of processes and threads of each session and job.
        tmp: size of /tmp, which counts as memory.
        warm: the maximum number of warm containers for expected jobs, if the service runs as
            root; 0 for none.
        home_size: size of each home, if the service runs as root; by default without limit.
        blocked: networks that containers cannot reach, in addition to those that are always
            blocked.
        address: the IP address of this machine, as other nodes reach it; JupyterHub and the
            service listen on it. Required if there are other machines.
    """

    host: DockerHost = ""
    image: Annotated[str, Field(pattern=r"^(?:[a-z0-9]+(?:[._-][a-z0-9]+)*)?$")] = ""
    uid: Annotated[int, Field(ge=1, le=2**31)] = 1000
    memory: Annotated[ByteSize, Field(ge=256 * MIB)] = ByteSize(4096 * MIB)
    cpus: Annotated[float, Field(ge=0.1)] = 2.0
    pids: Annotated[int, Field(ge=64)] = 512
    tmp: Annotated[ByteSize, Field(ge=16 * MIB)] = ByteSize(1024 * MIB)
    warm: Annotated[int, Field(ge=0, le=64)] = 2
    home_size: Annotated[ByteSize, Field(ge=64 * MIB)] | None = None
    blocked: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    address: Address = ""


def _sbatch_option(text: str) -> str:
    if not text.startswith("--"):
        raise ValueError("an option of sbatch begins with --, such as --constraint=a100")
    name = text.partition("=")[0]
    if name in _OWN_OPTIONS:
        raise ValueError(f"Carrel sets {name} itself")
    return text


SbatchOption = Annotated[str, AfterValidator(_sbatch_option)]
_SlurmName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*$")]


class SlurmImageTable(_Table):
    """A table ``[[slurm.images]]``: a build of an image, which users choose by its name.

    Attributes:
        name: such as `datascience`; several builds may have the same name.
        source: what replaces `{image}`: the path of a file (SIF or SquashFS) that all nodes share,
            or an address that ends with a digest: `docker://REGISTRY/NAME@sha256:…`.
        digest: of a file, as `sha256sum FILE` prints it; a file that has changed is refused.
        title: what the lists say beside the name.
        kernels: names of kernels that it has in addition to those of Carrel's environment.
        built: the day of the build; of several builds with the same name, the newest is used.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$")]
    source: Annotated[str, Field(min_length=1)]
    digest: Annotated[str, Field(pattern=r"^(?:sha256:)?[0-9a-f]{64}$")] | None = None
    title: str = ""
    kernels: tuple[str, ...] = ()
    built: date

    @model_validator(mode="after")
    def _check_digest(self) -> Self:
        _, at, named = self.source.rpartition("@sha256:")
        if at:
            if self.digest is not None and self.digest.removeprefix("sha256:") != named:
                raise ValueError(f"source and digest of {self.name} name different builds")
            if not re.fullmatch(r"[0-9a-f]{64}", named):
                raise ValueError(f"source of {self.name} ends with no digest of 64 digits")
        elif not self.source.startswith("/"):
            raise ValueError(
                f"source of {self.name} must be the path of a file, or end with @sha256:DIGEST"
            )
        elif self.digest is None:
            raise ValueError(
                f"digest of {self.name} is missing: `sha256sum {self.source}` prints it"
            )
        return self

    @property
    def sha256(self) -> str:
        """The digest, from either place."""
        digits = self.digest or self.source.rpartition("@")[2]
        return f"sha256:{digits.removeprefix('sha256:')}"


class SlurmTable(_Table):
    """The table ``[slurm]``: settings of all jobs of the installation on a Slurm cluster.

    Attributes:
        conf: the path of slurm.conf, if Slurm's commands do not find it by themselves.
        address: the IP address of this machine, as the nodes of the cluster reach it; JupyterHub
            and the service listen on it. By default 127.0.0.1, for a cluster on this machine.
        partition, account, qos: of all sessions and jobs; by default those of the cluster. Without
            a partition, the nodes of all partitions form the pool.
        cpus: CPUs of each session and job.
        memory: memory of each session and job, in bytes; by default that of the cluster.
        options: further options of sbatch, such as `--constraint=a100` or `--reservation=course`.
        prologue: shell lines that run on the node before each session and job, such as
            `module load cuda/12.4`. If one of them fails, so does the session or job.
        container: program and arguments that run each session and job in a container, such as
            `["apptainer", "exec", "--nv", "--bind", "/srv", "/srv/images/course.sif"]`; their own
            command follows it. The container sees Carrel and the state folder at the same paths.
        images: the builds that users choose from; the first one is the default. The chosen one
            replaces `{image}` in `container` or `options`.
        mirror: whether jobs are charged to the accounts of their groups, which `carrel slurm sync`
            creates, instead of to `account`.
        simulated: types of devices (GRES) that are simulated, for a cluster without GPUs.
        device_memory: memory of a device, by its type, such as `{ a100 = "80GiB" }`.
    """

    conf: str = ""
    address: Address = ""
    partition: _SlurmName = ""
    account: _SlurmName = ""
    qos: _SlurmName = ""
    cpus: Annotated[int, Field(ge=1)] = 2
    memory: Annotated[ByteSize, Field(ge=64 * MIB)] | None = None
    options: tuple[SbatchOption, ...] = ()
    prologue: str = ""
    container: tuple[str, ...] = ()
    images: tuple[SlurmImageTable, ...] = ()
    mirror: bool = False
    simulated: tuple[_SlurmName, ...] = ()
    device_memory: dict[_SlurmName, ByteSize] = {}

    @model_validator(mode="after")
    def _check_images(self) -> Self:
        has_place = any("{image}" in word for word in (*self.container, *self.options))
        if self.images and not has_place:
            raise ValueError(
                "images need a place: write {image} in container, or in an option of sbatch"
            )
        if has_place and not self.images:
            raise ValueError("{image} stands for a build of [[slurm.images]], and there is none")
        builds = Counter((image.name, image.built) for image in self.images)
        for (name, _), count in builds.items():
            if count > 1:
                raise ValueError(f"several builds of {name} need different days in built")
        return self


class NodeTable(_Table):
    """A table ``[[nodes]]``: another machine with a Docker engine, whose devices join the pool.

    Attributes:
        name: the name of the node in the pool; this machine is `local`.
        docker_host: `ssh://USER@HOST` or `tcp://HOST:2376`.
        address: the IP address of the node, as this machine reaches it; sessions on the node
            listen on it.
        tls_ca, tls_cert, tls_key: TLS files for a `tcp://` host: the CA of the server, and the
            client certificate with its key.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$")]
    docker_host: Annotated[DockerHost, Field(min_length=1)]
    address: Address = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        tls = (self.tls_ca, self.tls_cert, self.tls_key)
        if any(tls) and not all(tls):
            raise ValueError("tls_ca, tls_cert and tls_key must be set together")
        if self.docker_host.startswith("tcp://") and not all(tls):
            raise ValueError(
                "a tcp:// host without TLS gives root on its machine to everyone who connects; "
                "set tls_ca, tls_cert and tls_key"
            )
        return self


class SiteFile(_Table):
    """The contents of carrel.toml."""

    engine: EngineKind | None = None
    docker: DockerTable = DockerTable()
    slurm: SlurmTable = SlurmTable()
    nodes: tuple[NodeTable, ...] = ()
    notifications: NotificationTable = NotificationTable()
    open_links: OpenLinkTable = OpenLinkTable()

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [LOCAL_NODE, *(node.name for node in self.nodes)]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"several nodes have the name {', '.join(repeated)}")
        return self

    @model_validator(mode="after")
    def _check_addresses(self) -> Self:
        """Require addresses between machines: container networks do not span machines."""
        for node in self.nodes:
            remote = not node.docker_host.startswith("unix://")
            if remote and not node.address:
                raise ValueError(
                    f"{node.name} is another machine: set its address, as this machine reaches it"
                )
            if (remote or node.address) and not self.docker.address:
                raise ValueError(
                    f"{node.name} is another machine: set address below [docker], the address of "
                    "this machine as the node reaches it"
                )
        return self

    @classmethod
    def load(cls, state: StateFolder) -> Self:
        """Load the file; return the defaults if there is none.

        Raises:
            InvalidInput: the file cannot be read or is not valid.
        """
        path = state.site_file
        try:
            return cls.parse(path.read_text(encoding="utf-8-sig"), path)
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from error

    @classmethod
    def parse(cls, text: str, path: Path) -> Self:
        """Parse the text of the file at a path. Raises InvalidInput if it is not valid."""
        try:
            return cls.model_validate(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from error
        except ValidationError as error:
            raise InvalidInput(
                f"{path} is not valid. {_problems(error)}",
                accepted="docs/reference/configuration.md lists the accepted keys.",
            ) from error


def _problems(error: ValidationError) -> str:
    """Return one sentence for each problem."""
    sentences = []
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"]) or "the file"
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = "unknown key"
        sentences.append(f"{key}: {message}.")
    return " ".join(sentences)
