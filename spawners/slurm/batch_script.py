"""Write the batch script and the options of a job of Slurm."""

from __future__ import annotations

import math
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ...hub.attempts.spec import LOG
from ...hub.errors import BackendFailed
from ...hub.interfaces.backend import LaunchOrder
from ...hub.interfaces.backend_settings import SlurmOptions
from ...hub.scheduling.model.snapshot import Device
from .accounts import account_of
from .job_states import PROLOGUE_FAILED, JobMark
from .times import time_limit

ASK: Final = "carrel.spawners.processes.ask"
_FAILED: Final = "the prologue below [slurm] in carrel.toml failed"


def batch_script(
    command: Sequence[str], environment: Mapping[str, str], slurm: SlurmOptions
) -> str:
    """Return a script that becomes this command, so that Slurm signals the command itself.

    Slurm's own variables, such as ``CUDA_VISIBLE_DEVICES``, stay as it has set them. The prologue
    comes last, so that it can extend ``PATH``.
    """
    return "\n".join(["#!/bin/sh", *command_lines(command, environment, slurm), ""])


def command_lines(
    command: Sequence[str], environment: Mapping[str, str], slurm: SlurmOptions
) -> list[str]:
    """Return lines of a shell script that become a command, in the container of the site."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    whole = (*slurm.container, *command)
    return [*lines, *prologue_lines(slurm.prologue), f"exec {shlex.join(whole)}"]


def prologue_lines(prologue: str) -> list[str]:
    """Return lines of a shell script that run the prologue, and end the script if a line fails."""
    if not prologue.strip():
        return []
    failed = f'echo "carrel: {_FAILED}" >&2; exit {PROLOGUE_FAILED}'
    return [f"trap {shlex.quote(failed)} EXIT", "set -e", prologue, "set +e", "trap - EXIT"]


def ask_command(lease: str, state: Path) -> tuple[str, ...]:
    """Return the command that sends SIGUSR1 to those processes of a lease that handle it."""
    return (sys.executable, "-P", "-m", ASK, lease, str(state))


def job_options(order: LaunchOrder, mark: JobMark, slurm: SlurmOptions) -> list[str]:
    """Return the options of ``sbatch`` for one attempt.

    Raises:
        BackendFailed: the devices of the lease are on several nodes.
    """
    found = lease_options(
        mark,
        slurm,
        home=order.home,
        log=order.folder / LOG,
        seconds=order.seconds,
        devices=order.devices,
        node=order.node,
        group=order.group,
    )
    return [*found, "--input=none", *slurm.options]


def lease_options(
    mark: JobMark,
    slurm: SlurmOptions,
    *,
    home: Path,
    log: Path,
    seconds: int,
    devices: Sequence[Device],
    node: str,
    group: str,
) -> list[str]:
    """Return the options of ``sbatch`` that a lease decides.

    Args:
        seconds: the time limit.
        node: of a lease without devices; empty if Slurm may choose.
        group: whose account is charged, if quotas are mirrored.

    Raises:
        BackendFailed: the devices of the lease are on several nodes.
    """
    nodes = {device.node for device in devices}
    if len(nodes) > 1:
        raise BackendFailed(f"The devices of {mark.lease} are on several nodes.")
    chosen = next(iter(nodes), node)
    return [
        *own_options(home=home, log=log),
        *job_settings(mark, slurm, seconds=seconds, group=group),
        *placement_options(slurm, nodes=(chosen,), gres=gres(devices, slurm)),
    ]


def own_options(*, home: Path, log: Path) -> list[str]:
    """Return the options of the batch script, which a job has once."""
    return [f"--chdir={home.resolve()}", f"--output={log.resolve()}", "--open-mode=append"]


def job_settings(mark: JobMark, slurm: SlurmOptions, *, seconds: int, group: str) -> list[str]:
    """Return the options that all components of a job share, but for their marks."""
    account = account_of(group) if slurm.mirror and group else slurm.account
    return [
        f"--job-name={mark.name}",
        f"--comment={mark.comment()}",
        # Carrel queues a lost job again, with a new attempt.
        "--no-requeue",
        f"--time={time_limit(seconds)}",
        *named_options(partition=slurm.partition, account=account, qos=slurm.qos),
    ]


def placement_options(
    slurm: SlurmOptions, *, nodes: Sequence[str], gres: str, members: int = 1
) -> list[str]:
    """Return the options for nodes of one kind.

    Args:
        nodes: an empty name lets Slurm choose the node.
        gres: the devices of each node; empty for none.
        members: processes that Slurm starts on each node.
    """
    found = [
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes) * members}",
        f"--ntasks-per-node={members}",
        f"--cpus-per-task={slurm.cpus}",
    ]
    if slurm.memory:
        found.append(f"--mem={members * memory_kilobytes(slurm)}K")
    return found + named_options(nodelist=",".join(filter(None, nodes)), gres=gres)


def memory_kilobytes(slurm: SlurmOptions) -> int:
    """Return the memory of a session, job or member."""
    return math.ceil(slurm.memory / 1024)


def named_options(**values: str) -> list[str]:
    """Return ``--NAME=VALUE`` for each value that is not empty."""
    return [f"--{name}={value}" for name, value in values.items() if value]


def gres(devices: Sequence[Device], slurm: SlurmOptions) -> str:
    """Return the value of ``--gres`` for devices of one node: ``gpu:a100:2,gpu:v100:1``."""
    types = Counter("" if each.model == slurm.untyped else each.model for each in devices)
    return ",".join(
        f"gpu:{name}:{count}" if name else f"gpu:{count}" for name, count in types.items()
    )
