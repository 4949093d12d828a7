"""Run the members of a gang as steps of one job of Slurm.

Slurm starts all nodes of a job at once, so that no member holds devices while another one waits.
Nodes with equal numbers of members and devices are one component of the job; Slurm lists further
components as jobs of their own (a heterogeneous job, slurm.schedmd.com/heterogeneous_jobs.html).
The batch script starts a step for each member, on the node that the lease names, and notes how it
ended in the member's folder: the job goes on while another member runs.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...hub.attempts.spec import LOG, member_folder
from ...hub.interfaces.backend import AttemptStatus, LaunchOrder, MemberOrder, ProcessState
from ...hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from ..local.backend import job_environment, runner_command
from .batch_script import (
    command_lines,
    gres,
    job_settings,
    memory_kilobytes,
    own_options,
    placement_options,
)
from .container_images import with_image
from .devices import job_variables
from .job_states import JobMark, SlurmJob, prologue_cause

EXIT: Final = "exit"
"""The file in a member's folder with the exit status of its step."""
_MEMBER: Final = f"""member() {{
  folder=$1; shift
  srun "$@" >>"$folder/{LOG}" 2>&1
  echo $? >"$folder/{EXIT}.new" && mv "$folder/{EXIT}.new" "$folder/{EXIT}"
}}"""
_WAIT: Final = "while :; do wait; [ $? -gt 128 ] || break; done"
"""A signal that the script has a trap for ends ``wait`` with a status above 128."""
_SIGNALLED: Final = 128
"""A shell and ``srun`` add it to the number of the signal that ended a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangComponent:
    """Nodes with equal numbers of members and devices.

    Attributes:
        orders: of the members on all these nodes.
        gres: the devices of each node.
    """

    nodes: tuple[str, ...]
    orders: tuple[LaunchOrder, ...]
    gres: str

    @property
    def members(self) -> int:
        """The number of members on each node."""
        return len(self.orders) // len(self.nodes)


def components(orders: Sequence[LaunchOrder], slurm: SlurmOptions) -> tuple[GangComponent, ...]:
    """Return the components of a gang's job; that of member 0 comes first."""
    by_node: dict[str, list[LaunchOrder]] = defaultdict(list)
    for order in orders:
        by_node[_node_of(order)].append(order)
    equal: dict[tuple[int, str], list[str]] = defaultdict(list)
    for node, members in by_node.items():
        wanted = gres([device for each in members for device in each.devices], slurm)
        equal[len(members), wanted].append(node)
    return tuple(
        GangComponent(
            nodes=tuple(nodes),
            orders=tuple(order for node in nodes for order in by_node[node]),
            gres=wanted,
        )
        for (_, wanted), nodes in equal.items()
    )


def _node_of(order: LaunchOrder) -> str:
    return order.devices[0].node if order.devices else order.node


def gang_options(
    mark: JobMark, parts: Sequence[GangComponent], first: LaunchOrder, slurm: SlurmOptions
) -> list[str]:
    """Return the options of ``sbatch`` for a gang.

    Args:
        mark: of the lease.
        first: the order of member 0.
    """
    found = [*own_options(home=first.home, log=first.folder / LOG), "--input=none"]
    for number, part in enumerate(parts):
        found += [":"] if number else []
        own = replace(
            mark,
            devices=tuple(device.id for order in part.orders for device in order.devices),
            members={_member(order).rank: _node_of(order) for order in part.orders},
        )
        found += job_settings(own, slurm, seconds=first.seconds, group=first.group)
        found += placement_options(slurm, nodes=part.nodes, gres=part.gres, members=part.members)
        found += with_image(slurm, part.orders[0].image).options
    return found


def gang_script(
    parts: Sequence[GangComponent], settings: BackendSettings, slurm: SlurmOptions
) -> str:
    """Return a script that starts all members, and ends when all have ended."""
    lines = ["#!/bin/sh", "trap : INT TERM", _MEMBER]
    for number, part in enumerate(parts):
        for order in part.orders:
            script = "\n".join(
                command_lines(
                    runner_command(order.folder),
                    job_environment(order, settings.state, devices=job_variables(order.devices)),
                    with_image(slurm, order.image),
                )
            )
            step = [
                str(order.folder.resolve()),
                *([f"--het-group={number}"] if len(parts) > 1 else []),
                *_step_options(order, slurm),
                *("/bin/sh", "-c", script),
            ]
            lines.append(f"member {shlex.join(step)} &")
    return "\n".join([*lines, _WAIT, ""])


def _step_options(order: LaunchOrder, slurm: SlurmOptions) -> list[str]:
    """Return the options of ``srun`` for a member: its part of the job, and nothing else of it."""
    node = _node_of(order)
    return [
        f"--job-name={order.lease_id}",
        *([f"--nodelist={node}"] if node else []),
        "--nodes=1",
        "--ntasks=1",
        "--exact",
        f"--cpus-per-task={slurm.cpus}",
        # Without a size, a step takes all memory of the job, and the next one waits.
        f"--mem={memory_kilobytes(slurm)}K" if slurm.memory else "--mem=0",
        f"--gres={gres(order.devices, slurm) or 'none'}",
        f"--output={(order.folder / LOG).resolve()}",
        "--open-mode=append",
        "--input=none",
        "--export=ALL",
    ]


def _member(order: LaunchOrder) -> MemberOrder:
    if order.member is None:
        raise ValueError(f"{order.lease_id} is no member of a gang.")
    return order.member


def member_status(job: SlurmJob, rank: int) -> AttemptStatus:
    """Return the status of a member from that of its job and the end of its step."""
    part, number = job.part_of(rank), exit_status(job, rank)
    if job.is_pending or not (part.has_ended or number is not None):
        return job.status()
    status = part.status() if part.has_ended else AttemptStatus(life=ProcessState.DEAD)
    return replace(status, exit_status=number, cause=status.cause or prologue_cause(number))


def exit_status(job: SlurmJob, rank: int) -> int | None:
    """Return the exit status of a member's step; negative for a signal, None without an end."""
    if not job.log:
        return None
    try:
        number = int((member_folder(Path(job.log).parent, rank) / EXIT).read_text())
    except (OSError, ValueError):
        return None
    return _SIGNALLED - number if number > _SIGNALLED else number
