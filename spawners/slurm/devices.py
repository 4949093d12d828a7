"""The devices of the pool on a cluster, and which of them jobs from outside Carrel use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...hub.interfaces.backend_settings import SlurmOptions
from ...hub.interfaces.session_meter import JOB_VARIABLE
from ...hub.scheduling.model.snapshot import Device, Health
from ..devices.environment import DEVICES_VARIABLE, device_environment, device_names
from .job_states import SlurmJob
from .nodes import SlurmNode

DRIVER: Final = "slurm"


def job_variables(devices: Sequence[Device]) -> dict[str, str]:
    """Return what the environment of a job says of its devices, and what measures them."""
    meter = {JOB_VARIABLE: "slurm"} if devices else {}
    return device_variables(devices) | meter


def device_variables(devices: Sequence[Device]) -> dict[str, str]:
    """Return what a lease's environment says of its devices.

    Slurm itself sets the variables that expose them, and without any they are all hidden.
    """
    if not devices:
        return device_environment(())
    return {DEVICES_VARIABLE: device_names(devices)}


def pool_devices(
    nodes: Iterable[SlurmNode], jobs: Collection[SlurmJob], slurm: SlurmOptions, installation: str
) -> tuple[Device, ...]:
    """Return the devices of all nodes with their health.

    Slurm chooses the indices of a job's devices, and Carrel's leases name others of the same type.
    So devices are counted: those that jobs from outside Carrel have are marked as busy among those
    that no lease has, the last ones first. A node that is down or drained has healthy devices on
    which nothing starts (``SlurmBackend.nodes``): what runs there, or ends, is Slurm's to say.
    """
    leased: set[str] = set()
    own = Counter[tuple[str, str]]()
    for job in jobs:
        if job.mark is not None and job.mark.installation == installation and not job.has_ended:
            leased.update(job.mark.devices)
            own.update({(node, each.type): each.count for node, each in job.devices_by_node()})
    found: list[Device] = []
    for node in nodes:
        if node.is_in(slurm.partition):
            foreign = {kind: count - own[node.name, kind] for kind, count in node.used.items()}
            found += _of_node(node, foreign, leased, slurm)
    return tuple(found)


def _of_node(
    node: SlurmNode, foreign: dict[str, int], leased: Collection[str], slurm: SlurmOptions
) -> list[Device]:
    devices = list(_listed(node, slurm))
    left = Counter({kind or slurm.untyped: max(0, count) for kind, count in foreign.items()})
    for at in reversed(range(len(devices))):
        device = devices[at]
        if left[device.model] > 0 and device.id not in leased:
            left[device.model] -= 1
            devices[at] = replace(
                device, health=Health.BUSY, why="in use by a job of Slurm from outside Carrel"
            )
    return devices


def _listed(node: SlurmNode, slurm: SlurmOptions) -> Iterator[Device]:
    index = 0
    for gres in node.gres:
        for _ in range(gres.count):
            yield Device(
                id=f"{node.name}-gpu{index}",
                node=node.name,
                index=index,
                model=gres.type or slurm.untyped,
                memory_bytes=slurm.device_memory.get(gres.type, 0),
                simulated=gres.type in slurm.simulated,
                driver=DRIVER,
            )
            index += 1
