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

ASK: Final = "carrel.spawners.processes.ask"
_FAILED: Final = "the prologue below [slurm] in carrel.toml failed"
_GRACE_MINUTES: Final = 2
"""Carrel ends a job at its time limit; Slurm does so later, in case the service is down then."""


def batch_script(command: Sequence[str], environment: Mapping[str, str], prologue: str = "") -> str:
    """Return a script that becomes this command, so that Slurm signals the command itself.

    Slurm's own variables, such as ``CUDA_VISIBLE_DEVICES``, stay as it has set them. The prologue
    comes last, so that it can extend ``PATH``.
    """
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    lines += prologue_lines(prologue)
    return "\n".join(["#!/bin/sh", *lines, f"exec {shlex.join(command)}", ""])


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
    # The service's variables are secrets and stay here; the script sets those of the job.
    return [*found, "--export=NIL", "--input=none", *slurm.options]


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
    found = [
        f"--job-name={mark.name}",
        f"--comment={mark.comment()}",
        f"--chdir={home.resolve()}",
        f"--output={log.resolve()}",
        "--open-mode=append",
        # Carrel queues a lost job again, with a new attempt.
        "--no-requeue",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={slurm.cpus}",
        f"--time={time_limit(seconds)}",
    ]
    if slurm.memory:
        found.append(f"--mem={math.ceil(slurm.memory / 1024)}K")
    account = account_of(group) if slurm.mirror and group else slurm.account
    found += named_options(partition=slurm.partition, account=account, qos=slurm.qos)
    nodes = {device.node for device in devices}
    if len(nodes) > 1:
        raise BackendFailed(f"The devices of {mark.lease} are on several nodes.")
    chosen = next(iter(nodes), node)
    if chosen:
        found.append(f"--nodelist={chosen}")
    if devices:
        found.append(f"--gres={gres(devices, slurm)}")
    return found


def time_limit(seconds: int) -> int:
    """Return Slurm's time limit in minutes for a time limit of Carrel."""
    return math.ceil(seconds / 60) + _GRACE_MINUTES


def named_options(**values: str) -> list[str]:
    """Return ``--NAME=VALUE`` for each value that is not empty."""
    return [f"--{name}={value}" for name, value in values.items() if value]


def gres(devices: Sequence[Device], slurm: SlurmOptions) -> str:
    """Return the value of ``--gres`` for devices of one node: ``gpu:a100:2,gpu:v100:1``."""
    types = Counter("" if each.model == slurm.untyped else each.model for each in devices)
    return ",".join(
        f"gpu:{name}:{count}" if name else f"gpu:{count}" for name, count in types.items()
    )
