"""A client of a Docker engine, with timeouts and errors whose messages users can act on.

All calls block. They raise ``Unavailable`` if the engine does not answer, so that callers retry,
and ``BackendFailed`` with a remedy if the engine refuses.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import docker
import docker.tls
import docker.types
import requests.exceptions
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.backend_settings import DockerHost
from ....hub.records.json_value import Json
from ....hub.records.leases import Handle
from ....hub.records.utilization import ProcessReading

SECONDS: Final = 5.0
START_SECONDS: Final = 30.0
VXLAN_PORT: Final = 4789
"""UDP port of overlay networks by default."""
_EXIT_BY_SIGNAL: Final = 128
_SHORT = 300
_CONFLICT = 409
_MOST_CLIENTS: Final = 16
"""Most cached clients, one per timeout."""
_MOST_CONNECTIONS: Final = 32
"""Connections that a client keeps open: a whole class may start at the same time."""


class ImageMissing(BackendFailed):
    """The image of a container is missing."""


class NameTaken(BackendFailed):
    """The name or the addresses are in use, or the object is already in that state."""


class _Missing(BackendFailed):
    """The container or network does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedContainer:
    """A container as listed by the engine: its identity, and whether it runs."""

    id: str
    name: str
    labels: Mapping[str, str]
    running: bool
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The details of a container.

    Attributes:
        handle: its init process on the host; None unless it runs.
        exit_status: negative for a signal; None until it has ended.
        out_of_memory: the engine reports that it was killed for memory.
        error: the engine's error message about it.
        log_tail: the end of a session's output; empty while it runs.
    """

    id: str
    state: str
    handle: Handle | None
    exit_status: int | None
    out_of_memory: bool
    error: str
    log_tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    id: str
    name: str
    labels: Mapping[str, str]
    subnets: tuple[str, ...]
    created: float
    overlay: bool = False
    """Whether it connects the nodes of a swarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmState:
    """What an engine knows of its swarm.

    Attributes:
        node_id: its id in the swarm; empty if it is in none.
        nodes: ids of all nodes of the swarm; empty unless the engine is a manager.
        data_port: the UDP port of overlay networks; 0 unless the engine is a manager.
    """

    node_id: str = ""
    nodes: frozenset[str] = frozenset()
    data_port: int = 0


class DockerClient:
    """A client of one engine; safe to use from any thread."""

    def __init__(self, host: DockerHost) -> None:
        self.node = host.node
        self._host = host
        self._lock = threading.Lock()
        self._clients: dict[float, docker.APIClient] = {}

    # -- containers -----------------------------------------------------------------------

    def containers(self, labels: Mapping[str, str]) -> tuple[ListedContainer, ...]:
        """Return all containers with these labels, in any state; an empty value matches any."""
        filters = [f"{name}={value}" if value else name for name, value in labels.items()]
        with self._calling() as client:
            found = client.containers(all=True, filters={"label": filters})
        return tuple(
            ListedContainer(
                id=item["Id"],
                name=item["Names"][0].removeprefix("/") if item.get("Names") else "",
                labels=dict(item.get("Labels") or {}),
                # A paused container also holds its devices.
                running=item["State"] not in ("created", "exited", "dead"),
                created=float(item["Created"]),
            )
            for item in found
        )

    def inspect(self, name: str) -> Container | None:
        """Return the container of this name or id; None if there is none."""
        try:
            with self._calling() as client:
                found = client.inspect_container(name)
        except _Missing:
            return None
        return _container(found)

    def create(self, name: str, body: Mapping[str, Json], *, timeout: float = START_SECONDS) -> str:
        """Create a container as ``template`` describes it; return its id.

        Raises:
            BackendFailed: its image is missing, the disk is full, or the engine refuses.
        """
        with self._calling(timeout) as client:
            created = client.create_container_from_config(dict(body), name)
        return cast(str, created["Id"])

    def start(self, container: str, *, timeout: float = START_SECONDS) -> None:
        with self._calling(timeout) as client:
            client.start(container)

    def rename(self, container: str, name: str) -> None:
        """Rename a container.

        Raises:
            NameTaken: another container has this name.
        """
        with self._calling() as client:
            client.rename(container, name)

    def kill(self, container: str, signal: str) -> None:
        """Send a signal to a container; it is not an error if it has ended."""
        with _ignore_if_done(), self._calling() as client:
            client.kill(container, signal)

    def remove(self, container: str) -> None:
        """Remove a container in any state; it is not an error if it is gone."""
        with _ignore_if_done(), self._calling(START_SECONDS) as client:
            client.remove_container(container, force=True, v=True)

    def wait(self, container: str, seconds: float) -> int | None:
        """Return the exit status; None if the container still runs after these seconds."""
        try:
            with self._calling(seconds) as client:
                return int(client.wait(container, timeout=seconds)["StatusCode"])
        except (_Missing, Unavailable):
            return None

    def logs(self, container: str, *, lines: int) -> str | None:
        """Return the last lines of its output; None if the container is removed."""
        try:
            with self._calling() as client:
                text = client.logs(container, stdout=True, stderr=True, tail=lines)
        except (_Missing, NameTaken):
            return None
        return cast(bytes, text).decode(errors="replace")

    def run_inside(self, container: str, command: Sequence[str]) -> None:
        """Run a program to its end in a running container, as its user.

        The output is not returned, because the client sometimes loses its beginning (docker-py,
        issue 2042).
        """
        with self._calling() as client:
            client.exec_start(client.exec_create(container, list(command))["Id"])

    def cpu_seconds(self, container: str) -> float | None:
        """Return the CPU seconds of all its processes so far; None if it does not run."""
        found = self.utilization(container)
        return None if found is None else found.cpu_seconds

    def utilization(self, container: str) -> ProcessReading | None:
        """Return what its control group has used; None if it does not run."""
        try:
            with self._calling() as client:
                found = client.stats(container, stream=False, one_shot=True)
        except BackendFailed:
            return None
        used = found.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage")
        if used is None:
            return None
        memory = working_set(found.get("memory_stats", {}))
        held = found.get("cpu_stats", {}).get("throttling_data", {}).get("throttled_time")
        return ProcessReading(
            cpu_seconds=used / 1e9,
            memory_bytes=memory,
            throttled_seconds=None if held is None else held / 1e9,
        )

    def processes(self, container: str) -> tuple[tuple[int, int, float], ...]:
        """Return pid, parent's pid (both on the host) and CPU seconds of each process."""
        try:
            with self._calling() as client:
                found = client.top(container, "-eo pid,ppid,cputimes")
        except BackendFailed:
            return ()
        rows = found.get("Processes") or ()
        return tuple((int(pid), int(parent), float(used)) for pid, parent, used in rows)

    def run_once(
        self, name: str, body: Mapping[str, Json], *, seconds: float = START_SECONDS
    ) -> tuple[int | None, str]:
        """Run a container to its end and remove it; return its exit status and its output."""
        self.remove(name)
        container = self.create(name, body)
        try:
            self.start(container)
            status = self.wait(container, seconds)
            return status, self.logs(container, lines=2000) or ""
        finally:
            self.remove(container)

    # -- networks -------------------------------------------------------------------------

    def networks(self, label: str = "") -> tuple[Network, ...]:
        """Return the networks with a label, or all of them."""
        filters = {"label": [label]} if label else None
        with self._calling() as client:
            found = client.networks(filters=filters)
        return tuple(_network(network) for network in found)

    def create_network(
        self,
        name: str,
        *,
        bridge: str,
        subnet: str,
        gateway: str,
        outside: bool,
        shared: bool = False,
        labels: Mapping[str, str],
    ) -> None:
        """Create a bridge.

        Args:
            outside: masquerade traffic to other hosts with the address of this host.
            shared: containers on it can reach each other.

        Raises:
            NameTaken: its name, its addresses or its bridge are in use.
        """
        pool = docker.types.IPAMPool(subnet=subnet, gateway=gateway)
        with self._calling(START_SECONDS) as client:
            client.create_network(
                name,
                driver="bridge",
                options={
                    "com.docker.network.bridge.name": bridge,
                    "com.docker.network.bridge.enable_icc": str(shared).lower(),
                    "com.docker.network.bridge.enable_ip_masquerade": str(outside).lower(),
                },
                ipam=docker.types.IPAMConfig(pool_configs=[pool]),
                check_duplicate=True,
                labels=dict(labels),
            )

    def create_overlay(self, name: str, *, subnet: str, labels: Mapping[str, str]) -> None:
        """Create a network across the nodes of the swarm, without a way to anything else.

        Only a manager can. The swarm assigns the subnet a moment later.

        Raises:
            NameTaken: a network has this name.
        """
        with self._calling(START_SECONDS) as client:
            client.create_network(
                name,
                driver="overlay",
                ipam=docker.types.IPAMConfig(pool_configs=[docker.types.IPAMPool(subnet=subnet)]),
                internal=True,
                attachable=True,
                labels=dict(labels),
            )

    def connect(self, container: str, network: str) -> None:
        """Connect a container to one more network."""
        with self._calling(START_SECONDS) as client:
            client.connect_container_to_network(container, network)

    def change_network(self, container: str, *, out_of: str, into: str) -> None:
        """Connect a running container to another network."""
        with self._calling(START_SECONDS) as client:
            client.disconnect_container_from_network(container, out_of)
            client.connect_container_to_network(container, into)

    def users_of(self, network: str) -> int | None:
        """Return the number of connected running containers; None if there is no such network."""
        try:
            with self._calling() as client:
                found = client.inspect_network(network)
        except _Missing:
            return None
        return len(found.get("Containers") or {})

    def remove_network(self, network: str) -> bool:
        """Remove a network; return False if it is in use."""
        try:
            with self._calling(START_SECONDS) as client:
                client.remove_network(network)
        except _Missing:
            return True
        except BackendFailed:
            return False
        return True

    # -- the engine itself ----------------------------------------------------------------

    def info(self) -> Mapping[str, Json]:
        with self._calling() as client:
            return cast(Mapping[str, Json], client.info())

    def swarm(self) -> SwarmState:
        """Return what the engine knows of its swarm.

        Raises:
            BackendFailed: it is a manager, but the swarm has too few managers that answer.
        """
        with self._calling() as client:
            found = client.info().get("Swarm") or {}
            if found.get("LocalNodeState") != "active":
                return SwarmState()
            if not found.get("ControlAvailable"):
                return SwarmState(node_id=found["NodeID"])
            return SwarmState(
                node_id=found["NodeID"],
                nodes=frozenset(node["ID"] for node in client.nodes()),
                data_port=int((found.get("Cluster") or {}).get("DataPathPort") or VXLAN_PORT),
            )

    def images(self, label: str) -> tuple[Mapping[str, Json], ...]:
        """Return the images with a label as the engine lists them, the newest first."""
        with self._calling() as client:
            found = client.images(filters={"label": label})
        return tuple(sorted(found, key=lambda image: -int(image["Created"])))

    # -- private --------------------------------------------------------------------------

    @contextmanager
    def _calling(self, seconds: float = SECONDS) -> Iterator[docker.APIClient]:
        """Yield a client for one call, and translate its errors."""
        try:
            yield self._client(seconds)
        except APIError as error:
            raise translate_error(error, self.node) from error
        except (DockerException, requests.exceptions.RequestException, OSError) as error:
            slow = isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error)
            what = f"is slow: no answer within {seconds:g} s" if slow else "does not answer"
            raise Unavailable(f"The Docker engine on {self.node} {what}.") from error

    def _client(self, seconds: float) -> docker.APIClient:
        with self._lock:
            known = self._clients.get(seconds)
        if known is None:
            known = connect(self._host, seconds)
            with self._lock:
                if len(self._clients) < _MOST_CLIENTS:
                    self._clients[seconds] = known
        return known


def connect(host: DockerHost, seconds: float, **more: object) -> docker.APIClient:
    """Return a client with this timeout; requests the version of the engine.

    Args:
        more: options of an administrator, which take precedence.
    """
    tls: docker.tls.TLSConfig | bool = False
    if host.tls_cert:
        pair = (host.tls_cert, host.tls_key)
        tls = docker.tls.TLSConfig(client_cert=pair, ca_cert=host.tls_ca, verify=True)
    ssh = host.url.startswith("ssh://")
    own = {"version": "auto", "timeout": seconds, "tls": tls, "use_ssh_client": ssh}
    own |= {"max_pool_size": _MOST_CONNECTIONS}
    return docker.APIClient(host.url, **(own | more))


def translate_error(error: APIError, node: str) -> BackendFailed:
    """Translate a refusal of this node's engine into an error with a remedy."""
    text = _explanation(error)
    lower = text.lower()
    if isinstance(error, ImageNotFound) or (isinstance(error, NotFound) and "image" in lower):
        return ImageMissing(
            f"The image is not on {node}: {text}.",
            accepted="An administrator can build it there: carrel images build.",
        )
    if isinstance(error, NotFound):
        return _Missing(f"The Docker engine on {node} says: {text}.")
    if "no space left" in lower or "disk quota" in lower:
        return BackendFailed(
            f"The disk of {node} is full: no container can be created there.",
            accepted="An administrator can free space: carrel images prune.",
        )
    overlaps = any(word in lower for word in ("overlaps", "already exists", "conflicts with"))
    kind = NameTaken if error.status_code == _CONFLICT or overlaps else BackendFailed
    return kind(f"The Docker engine on {node} says: {text}.")


@contextmanager
def _ignore_if_done() -> Iterator[None]:
    """Ignore errors about an object that is gone or being removed."""
    try:
        yield
    except (_Missing, NameTaken):
        return


def _explanation(error: APIError) -> str:
    text = str(error.explanation or error).strip().rstrip(".")
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def _container(found: Mapping[str, Any]) -> Container:  # Any: JSON of the engine
    state = found["State"]
    status = str(state["Status"])
    running = status not in ("created", "exited", "dead") and state["Pid"]
    started_at = seconds_of(state["StartedAt"])
    ended = status in ("exited", "dead")
    return Container(
        id=found["Id"],
        state=status,
        handle=Handle(pid=int(state["Pid"]), started_at=started_at) if running else None,
        exit_status=exit_status(int(state["ExitCode"])) if ended else None,
        out_of_memory=bool(state.get("OOMKilled")) and ended,
        error=str(state.get("Error") or ""),
    )


def working_set(found: Mapping[str, Any]) -> int:  # Any: JSON of the engine
    """Return the memory of a control group without caches of files, as ``docker stats`` does."""
    details = found.get("stats", {})
    # The names of version 2 and of version 1.
    caches = details.get("inactive_file", details.get("total_inactive_file", 0))
    return max(0, int(found.get("usage", 0)) - int(caches))


def exit_status(code: int) -> int:
    """Convert a container's exit code: its init reports a signal as 128 plus its number."""
    return -(code - _EXIT_BY_SIGNAL) if code > _EXIT_BY_SIGNAL else code


def seconds_of(time: str) -> float:
    """Convert a time of the engine into seconds since the epoch."""
    return datetime.fromisoformat(time).timestamp()


def _network(found: Mapping[str, Any]) -> Network:  # Any: JSON of the engine
    pools = (found.get("IPAM") or {}).get("Config") or ()
    return Network(
        id=found["Id"],
        name=found["Name"],
        labels=dict(found.get("Labels") or {}),
        subnets=tuple(pool["Subnet"] for pool in pools if pool.get("Subnet")),
        created=seconds_of(found["Created"]),
        overlay=found.get("Driver") == "overlay",
    )
