"""Build the body of every container of a user: one template for jobs, sessions and grading.

A container cannot affect its host: it has no capabilities, no new privileges, a read-only root
file system, limits for memory, processes and temporary files, the engine's seccomp filter, and only
the devices of its lease. Users' choices arrive here only as checked values: the id of an image, the
owner, and whether the container gets a network. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ....hub.interfaces.devices import ContainerDevices
from ....hub.records.json_value import Json
from ....hub.scheduling.model.snapshot import Device
from ...devices.environment import container_devices, device_environment

LABEL: Final = "carrel.installation"
LEASE: Final = "carrel.lease"
EPOCH: Final = "carrel.epoch"
REQUEST: Final = "carrel.request"
OWNER: Final = "carrel.owner"
KIND: Final = "carrel.kind"
WARM: Final = "carrel.warm"
"""The name of a warm container, which was created before it had a lease."""

ATTEMPT: Final = "/carrel/attempt"
INPUT: Final = "/carrel/input.ipynb"
ARCHIVE: Final = "/carrel/work.tar.gz"
HOMES: Final = "/home"
SESSION_PORT: Final = 8888
"""Port of a session's server in its container."""

_RUN_BYTES: Final = 16 << 20
_LOG_BYTES: Final = "10m"
_LOG_FILES: Final = "3"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBounds:
    """The resource limits of a container; memory and tmp in bytes.

    Attributes:
        tmp: size of /tmp, and of /dev/shm; both are memory and count as such.
    """

    memory: int
    cpus: float
    pids: int
    tmp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of the host that is mounted into a container.

    Attributes:
        source: path on the host, chosen by the service.
        target: path in the container.
        followed: later mounts on the source appear in the container.
    """

    source: str
    target: str
    read_only: bool = False
    followed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A user's session or job, or a probe of the service itself.

    Attributes:
        image: id of the image (``sha256:…``).
        uid: user id and group id inside.
        network: name of an existing network.
        outside: whether names of other hosts are resolved.
        cdi: names of devices as the engine lists them (CDI); empty if it lists none.
        published: address of its machine at which a session answers, for a hub on another machine.
        warm: name of a warm container, which has no lease, request or owner; empty otherwise.
    """

    installation: str
    lease_id: str
    request_id: str
    epoch: int
    owner: str
    kind: str
    image: str
    command: tuple[str, ...]
    uid: int
    network: str
    bounds: ContainerBounds
    outside: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    devices: Sequence[Device] = ()
    cdi: frozenset[str] = frozenset()
    published: str = ""
    workdir: str = "/"
    warm: str = ""


def name_of(installation: str, lease_id: str) -> str:
    """Return the name of a container; the service generates lease ids that need no escaping."""
    return f"carrel-{installation}-{lease_id}"


def lease_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the lease of a container; empty if it has none.

    Labels cannot change: a warm container gets its lease by a new name, which is unique in an
    engine.
    """
    if WARM not in labels:
        return labels.get(LEASE, "")
    lease = name.removeprefix(name_of(labels[LABEL], ""))
    return "" if lease == labels[WARM] else lease


def labels(task: Task) -> dict[str, str]:
    if task.warm:
        return {LABEL: task.installation, WARM: task.warm, KIND: task.kind}
    return {
        LABEL: task.installation,
        LEASE: task.lease_id,
        EPOCH: str(task.epoch),
        REQUEST: task.request_id,
        OWNER: task.owner,
        KIND: task.kind,
    }


def container(task: Task) -> dict[str, Json]:
    """Return the body of the engine's create call."""
    return {
        "Image": task.image,
        # Empty, so that the image's entry point does not run before the command.
        "Entrypoint": [],
        "Cmd": list(task.command),
        "User": f"{task.uid}:{task.uid}",
        "WorkingDir": task.workdir,
        "Hostname": "carrel",
        "Env": [f"{name}={value}" for name, value in environment(task).items()],
        "Labels": dict(labels(task)),
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": host_config(task),
    }


def environment(task: Task) -> dict[str, str]:
    """Return the environment; the variables of the leased devices override any others."""
    devices = container_devices(task.devices, task.cdi).environment
    return {**task.environment, **device_environment(task.devices), **devices}


def host_config(task: Task) -> dict[str, Json]:
    bounds = task.bounds
    return {
        "NetworkMode": task.network,
        # The engine's resolver answers names of containers; without outside access it forwards no
        # other names.
        "Dns": [] if task.outside else ["127.0.0.1"],
        "Mounts": [_mount(mount) for mount in task.mounts],
        "Tmpfs": {
            "/tmp": f"rw,nosuid,nodev,size={bounds.tmp},mode=1777",  # noqa: S108  # its own
            "/run": f"rw,nosuid,nodev,noexec,size={_RUN_BYTES},mode=1777",
        },
        "ShmSize": bounds.tmp,
        "Memory": bounds.memory,
        "MemorySwap": bounds.memory,
        "NanoCpus": int(bounds.cpus * 1e9),
        "PidsLimit": bounds.pids,
        "Init": True,
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "PublishAllPorts": False,
        "PortBindings": _port_bindings(task),
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {
            "Type": "json-file",
            "Config": {"max-size": _LOG_BYTES, "max-file": _LOG_FILES},
        },
        **device_settings(container_devices(task.devices, task.cdi)),
    }


def _port_bindings(task: Task) -> dict[str, Json]:
    """Publish the session's port at a free port of the machine, which the engine reports."""
    if not task.published:
        return {}
    return {f"{SESSION_PORT}/tcp": [{"HostIp": task.published, "HostPort": ""}]}


def _mount(mount: Mount) -> dict[str, Json]:
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rslave" if mount.followed else "rprivate"},
    }


def device_settings(devices: ContainerDevices) -> dict[str, Json]:
    """Return the part of HostConfig that gives a container these devices and no others."""
    return {
        "DeviceRequests": [dict(request) for request in devices.requests],
        "Devices": [
            {"PathOnHost": file.path, "PathInContainer": file.path, "CgroupPermissions": "rw"}
            for file in devices.files
        ],
        "GroupAdd": sorted({str(file.group) for file in devices.files}),
    }
