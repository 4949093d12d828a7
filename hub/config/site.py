"""STATE/carrel.toml: what a site's administrator writes about engines and nodes.

    engine = "docker"

    [docker]
    memory = "8GiB"
    address = "10.1.2.3"

    [[nodes]]
    name = "gpu1"
    docker_host = "ssh://carrel@gpu1.example.org"
    address = "10.1.2.4"

Nothing has to be written: every key has a value that holds for one machine. A key that is not
known, or a value that cannot be meant, is said with what is accepted, and nothing starts.
"""

from __future__ import annotations

import ipaddress
import tomllib
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
from .settings import EngineKind
from .state_folder import StateFolder

MIB = 1024 * 1024
LOCAL_NODE = "local"
_SCHEMES = ("unix://", "tcp://", "ssh://")


def _docker_host(text: str) -> str:
    if text and not text.startswith(_SCHEMES):
        raise ValueError(f"a Docker host begins with {', '.join(_SCHEMES)}")
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
    """``[docker]``: holds for every container of the installation.

    Attributes:
        host: the engine of this machine; without it the DOCKER_HOST of `carrel up`, or that of its
            last start, or the usual socket.
        image: name of the image of who chooses none; datascience without it where that is built,
            else base.
        uid: user and group id inside containers.
        memory: bytes each session or job may use; more ends it with that reason.
        cpus: processors each may use.
        pids: processes and threads each may have.
        tmp: size of /tmp, which is memory.
        warm: how many containers may wait for jobs that are expected, where this service runs as
            root; 0 for none.
        home_size: size of each home, where this service runs as root; without it there is no
            limit.
        blocked: networks that no container reaches, beside those that none ever reaches.
        address: of this machine, as the other nodes reach it; the hub and the service listen
            there. With no other machine there is no need for one.
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


class NodeTable(_Table):
    """``[[nodes]]``: one more machine with an engine, whose devices join the pool.

    Attributes:
        name: how the pool calls it; this machine is ``local``.
        docker_host: ``ssh://USER@HOST`` or ``tcp://HOST:2376``.
        address: of that machine, as this one reaches it: sessions there answer on it.
        tls_ca, tls_cert, tls_key: files for a ``tcp://`` host: who it is, and who we are.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$")]
    docker_host: Annotated[DockerHost, Field(min_length=1)]
    address: Address = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    @model_validator(mode="after")
    def _is_reached_safely(self) -> Self:
        tls = (self.tls_ca, self.tls_cert, self.tls_key)
        if any(tls) and not all(tls):
            raise ValueError("tls_ca, tls_cert and tls_key belong together")
        if self.docker_host.startswith("tcp://") and not all(tls):
            raise ValueError(
                "a tcp:// host without TLS gives its machine to everyone who connects; "
                "name tls_ca, tls_cert and tls_key"
            )
        return self


class SiteFile(_Table):
    """The whole file."""

    engine: EngineKind | None = None
    docker: DockerTable = DockerTable()
    nodes: tuple[NodeTable, ...] = ()

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [LOCAL_NODE, *(node.name for node in self.nodes)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"more than one node is called {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _machines_reach_each_other(self) -> Self:
        """Networks of containers end at their machine."""
        for node in self.nodes:
            elsewhere = not node.docker_host.startswith("unix://")
            if elsewhere and not node.address:
                raise ValueError(
                    f"{node.name} is another machine: give it the address that this one reaches"
                )
            if (elsewhere or node.address) and not self.docker.address:
                raise ValueError(
                    f"{node.name} is another machine: say where it reaches this one, with address "
                    "below [docker]"
                )
        return self

    @classmethod
    def load(cls, state: StateFolder) -> Self:
        """What the file says; where there is none, what holds without it.

        Raises:
            InvalidInput: the file cannot be read, or says what cannot be meant.
        """
        path = state.site_file
        try:
            return cls.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from error
        except ValidationError as error:
            raise InvalidInput(
                f"{path} says what Carrel does not understand. {_said(error)}",
                accepted="docs/reference/configuration.md lists what it may hold.",
            ) from error


def _said(error: ValidationError) -> str:
    """One sentence for each thing that is wrong."""
    sentences = []
    for each in error.errors(include_url=False):
        where = ".".join(str(part) for part in each["loc"]) or "the file"
        what = each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            what = "is not a key that is known here"
        sentences.append(f"{where}: {what}.")
    return " ".join(sentences)
