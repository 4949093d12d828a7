"""Form the body of every container of a user: pure, one template for jobs, sessions and grading.

A user's container can do nothing to its host: it has no capability, no new privileges, a read-only
root, bounded memory, processes and temporary files, the engine's own seccomp filter, and no device
but those of its lease. Of a user's choices only checked values arrive here: an image by its id, an
owner, and whether to give it a network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ....hub.records.json_value import Json
from ....hub.scheduling.model.snapshot import Device
from ...devices.environment import device_environment

LABEL: Final = "carrel.installation"
LEASE: Final = "carrel.lease"
EPOCH: Final = "carrel.epoch"
REQUEST: Final = "carrel.request"
OWNER: Final = "carrel.owner"
KIND: Final = "carrel.kind"
WARM: Final = "carrel.warm"
"""The own name of a warm container, which was made before there was a lease for it."""

ATTEMPT: Final = "/carrel/attempt"
INPUT: Final = "/carrel/input.ipynb"
ARCHIVE: Final = "/carrel/work.tar.gz"
HOMES: Final = "/home"
SESSION_PORT: Final = 8888
"""Port of a session's server in its container."""

_GPU_CLASS: Final = "nvidia.com/gpu"
_RUN_BYTES: Final = 16 << 20
_LOG_BYTES: Final = "10m"
_LOG_FILES: Final = "3"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBounds:
    """The resources that each container may use; memory and tmp in bytes.

    Attributes:
        tmp: size of /tmp, and of /dev/shm; both are memory and count as such.
    """

    memory: int
    cpus: float
    pids: int
    tmp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of the host that the service chose, as the container sees it.

    Attributes:
        followed: later mounts on it appear inside.
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
        published: address of its machine at which a session answers, for a hub on another one.
        warm: its own name, for a warm container; it has no lease, request or owner.
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
    """Return the name of a container; lease ids are made by the service and need no escaping."""
    return f"carrel-{installation}-{lease_id}"


def lease_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the lease of a container; empty if it has none (yet).

    Labels cannot change. A warm container gets its lease by its name, which is unique in an engine.
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
        # Empty, so that nothing of the image runs before the command.
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
    devices = device_environment(task.devices)
    if _cdi_names(task):
        # Granted by name below; the older hook must not grant them a second time.
        devices["NVIDIA_VISIBLE_DEVICES"] = "void"
    return {**task.environment, **devices}


def host_config(task: Task) -> dict[str, Json]:
    bounds = task.bounds
    return {
        "NetworkMode": task.network,
        # The engine's own resolver answers; without outside access it forwards nothing.
        "Dns": [] if task.outside else ["127.0.0.1"],
        "Mounts": [_mount(each) for each in task.mounts],
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
        "DeviceRequests": _device_requests(task),
    }


def _port_bindings(task: Task) -> dict[str, Json]:
    """Publish the port at any free port there; the engine reports which."""
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


def _device_requests(task: Task) -> list[Json]:
    """Request devices by UUID, MIG instances too; simulated ones are unknown to the engine."""
    names = _cdi_names(task)
    if names:
        return [{"Driver": "cdi", "DeviceIDs": list(names)}]
    real = [device.id for device in task.devices if not device.simulated]
    if not real:
        return []
    return [{"Driver": "nvidia", "DeviceIDs": list(real), "Capabilities": [["gpu"]]}]


def _cdi_names(task: Task) -> tuple[str, ...]:
    """Return CDI names, if the engine lists all devices by UUID."""
    names = tuple(f"{_GPU_CLASS}={device.id}" for device in task.devices if not device.simulated)
    return names if names and task.cdi.issuperset(names) else ()
