"""Read from the accounting what jobs from outside Carrel have used: ``carrel slurm usage``."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...hub.errors import BackendFailed, Conflict
from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.interfaces.host import OutsideUse
from .batch_script import named_options
from .client import SlurmClient, options_of
from .job_states import JobMark

_DELIMITER: Final = "\x1f"
"""Names and comments of jobs hold anything that users type."""
_FIELDS: Final = ("User", "Account", "Start", "End", "AllocTRES", "JobName", "Comment")
_ALL_DEVICES: Final = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_TYPED_DEVICES: Final = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountedJob:
    """A job of the accounting that has had devices. Times are seconds since the epoch.

    Attributes:
        ended_at: None for one that still runs.
        mark: None for a job from outside Carrel.
    """

    user: str
    account: str
    started_at: float
    ended_at: float | None
    devices: int
    mark: JobMark | None


def create(settings: BackendSettings) -> SlurmUsage:
    """Entry point (group ``carrel.cluster_usage``)."""
    return SlurmUsage(settings)


class SlurmUsage:
    """The accounting of a Slurm cluster (``hub.interfaces.host.ClusterUsage``)."""

    def __init__(self, settings: BackendSettings) -> None:
        self._options = options_of(settings)
        self._client = SlurmClient(self._options.conf)
        self._installation = settings.installation

    def outside(self, since: float, until: float) -> tuple[OutsideUse, ...]:
        until = min(until, time.time())
        sums: dict[tuple[str, str], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for job in self._jobs(since, until):
            if job.mark is not None and job.mark.installation == self._installation:
                continue
            ended = until if job.ended_at is None else job.ended_at
            seconds = min(ended, until) - max(job.started_at, since)
            if seconds > 0:
                jobs, used = sums[job.user, job.account]
                sums[job.user, job.account] = jobs + 1, used + seconds * job.devices
        found = [
            OutsideUse(user=user, account=account, jobs=jobs, device_seconds=used)
            for (user, account), (jobs, used) in sums.items()
        ]
        return tuple(sorted(found, key=lambda use: (-use.device_seconds, use.user, use.account)))

    def _jobs(self, since: float, until: float) -> Iterator[AccountedJob]:
        try:
            out = self._client.run(
                *("sacct", "--allusers", "--allocations", "--duplicates"),
                *("--noheader", "--parsable2", f"--delimiter={_DELIMITER}"),
                f"--starttime={_local(since)}",
                f"--endtime={_local(until)}",
                f"--format={','.join(_FIELDS)}",
                *named_options(partition=self._options.partition),
            )
        except BackendFailed as error:
            raise Conflict(
                f"The accounts of the cluster cannot be read: {error.message}",
                accepted="A cluster with slurmdbd, and an account that may see all jobs "
                "(PrivateData in slurmdbd.conf).",
            ) from error
        for line in out.splitlines():
            if (job := parse_job(line)) is not None:
                yield job


def parse_job(line: str) -> AccountedJob | None:
    """Return the job in a line of ``sacct``; None for one that has had no devices."""
    values = line.split(_DELIMITER)
    if len(values) != len(_FIELDS):
        return None  # a line break in a name or a comment
    user, account, start, end, resources, name, comment = values
    devices = device_count(resources)
    started_at = _seconds(start)
    if not devices or started_at is None:
        return None
    return AccountedJob(
        user=user,
        account=account,
        started_at=started_at,
        ended_at=_seconds(end),
        devices=devices,
        mark=JobMark.read(name, comment),
    )


def device_count(resources: str) -> int:
    """Return the devices in allocated resources such as ``cpu=2,gres/gpu:a100=1,gres/gpu=1``."""
    if whole := _ALL_DEVICES.search(resources):
        return int(whole[1])
    return sum(map(int, _TYPED_DEVICES.findall(resources)))


def _local(at: float) -> str:
    """Return a time as ``sacct`` reads it: in the zone of this machine."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))


def _seconds(text: str) -> float | None:
    """Return the time that ``sacct`` shows; None if there is none yet."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
