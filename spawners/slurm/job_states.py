"""Read the jobs of a cluster: their state, their end, and why they wait.

Which job belongs to which lease stands in its comment, as JSON, and again in its name. A site's
job_submit plug-in may write comments, and a user may rename a job: one of the two is enough.

A job on nodes of different kinds has components, which Slurm lists as jobs of their own and starts
together. ``by_lease`` returns them as one job.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from ...hub.interfaces.backend import AttemptStatus, ProcessState
from ...hub.records.leases import Handle
from ...hub.records.requests import Cause, CauseCode
from .nodes import Gres, hostnames, parse_gres

_FORGOTTEN: Final = "FORGOTTEN"
"""Not a state of Slurm: a job without an end in the accounting, which slurmctld does not know."""
_ENDED: Final = frozenset(
    {
        _FORGOTTEN,
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
PROLOGUE_FAILED: Final = 90
"""The exit status of a job whose prologue failed; a runner has smaller ones."""
_PENDING: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"})
_LOSSES: Final = {
    "BOOT_FAIL": "Its node did not boot",
    "NODE_FAIL": "Its node failed",
    "PREEMPTED": "Slurm preempted it for another job",
    "LAUNCH_FAILED": "Slurm could not launch it on its node",
    _FORGOTTEN: "Slurm's controller crashed before it had saved that it runs",
}
"""Ends that are not the job's fault: it is queued again."""
_REASONS: Final = {
    "AssocGrpCpuLimit": "the account's limit of CPUs is reached",
    "AssocGrpGRES": "the account's limit of devices is reached",
    "AssocGrpGRESMinutes": "the account's device-minutes are used up",
    "AssocMaxWallDurationPerJobLimit": "its account allows no time limit as long; `carrel slurm "
    "sync` mirrors changed quotas",
    "AssocMaxJobsLimit": "the account's limit of running jobs is reached",
    "BadConstraints": "no node can ever fulfil it",
    "BeginTime": "its earliest start is not reached yet",
    "Dependency": "it waits for another job of Slurm",
    "JobHeldAdmin": "an administrator of Slurm holds it",
    "JobHeldUser": "it was held in Slurm by hand; `scontrol release` lets it go",
    "Licenses": "it waits for a licence",
    "NodeDown": "its node is down",
    "None": "Slurm has not looked at it yet",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition accepts no starts now",
    "PartitionNodeLimit": "the partition does not allow as many nodes",
    "PartitionTimeLimit": "the partition does not allow a time limit as long",
    "Priority": "other jobs of the cluster come first",
    "QOSGrpGRES": "the limit of devices of its QOS is reached",
    "QOSMaxGRESPerUser": "the limit of devices for each user of its QOS is reached",
    "QOSMaxWallDurationPerJobLimit": "its QOS allows no time limit as long",
    "QOSMaxJobsPerUserLimit": "the limit of running jobs for each user of its QOS is reached",
    "ReqNodeNotAvail": "its node is not available",
    "Reservation": "it waits for its reservation",
    "Resources": "jobs from outside Carrel use the node",
}
"""Slurm's reasons in words (slurm.schedmd.com/job_reason_codes.html)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMark:
    """What Carrel notes in the comment of a job.

    Attributes:
        devices: ids of the devices of the lease; of a component, of those on its nodes.
        members: the nodes of the members of a gang by rank; empty for a job of one member.
    """

    installation: str
    lease: str
    devices: tuple[str, ...] = ()
    members: Mapping[int, str] = field(default_factory=dict)

    def comment(self) -> str:
        members = {"members": self.members} if self.members else {}
        return json.dumps(
            {"carrel": self.installation, "lease": self.lease, "devices": list(self.devices)}
            | members
        )

    @property
    def name(self) -> str:
        """The name of the job."""
        return f"carrel-{self.installation}-{self.lease}"

    @classmethod
    def read(cls, name: str, comment: str) -> Self | None:
        """Return the mark of a job; None for a job from outside Carrel."""
        try:
            noted = json.loads(comment)
            return cls(
                installation=str(noted["carrel"]),
                lease=str(noted["lease"]),
                devices=tuple(str(each) for each in noted["devices"]),
                members={int(rank): str(node) for rank, node in noted.get("members", {}).items()},
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            prefix, _, rest = name.partition("-")
            installation, _, lease = rest.partition("-")
            if prefix != "carrel" or not installation or not lease:
                return None
            return cls(installation=installation, lease=lease)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """A job as ``squeue`` or ``sacct`` shows it. Times are seconds since the epoch, 0 if unset.

    Attributes:
        state: in capitals, such as RUNNING.
        submitted_at, started_at, ended_at: of a pending job, the start is Slurm's estimate; of a
            running one, the end is that of its time limit.
        listed_at: when Slurm was asked; 0 for a job from the accounting.
        minutes: the time limit; infinite for one without.
        exit_code: a wait status of POSIX.
        node: its nodes, as Slurm writes them.
        gres: devices that it has, of each of its nodes.
        mark: None for a job from outside Carrel.
        log: the path of its output.
        leader: the id of the job of whose components it is one; 0 for a job without.
        component: the number of the component, from 0.
        parts: the components of a job that ``by_lease`` has put together.
    """

    id: int
    state: str
    node: str
    submitted_at: float
    started_at: float
    ended_at: float
    reason: str = ""
    minutes: float = math.inf
    exit_code: int = 0
    gres: tuple[tuple[Gres, ...], ...] = ()
    mark: JobMark | None = None
    listed_at: float = 0.0
    log: str = ""
    leader: int = 0
    component: int = 0
    parts: tuple[SlurmJob, ...] = ()

    @classmethod
    def from_squeue(cls, found: Mapping[str, Any], listed_at: float = 0.0) -> Self:
        """Read one entry of ``squeue --json``, of Slurm 22.05 or a later one."""
        return cls(
            id=int(_number(found["job_id"])),
            state=_state(found.get("job_state")),
            node=str(found.get("nodes") or ""),
            submitted_at=_number(found.get("submit_time")),
            started_at=_number(found.get("start_time")),
            ended_at=_number(found.get("end_time")),
            reason=str(found.get("state_reason") or ""),
            minutes=_number(found.get("time_limit")) or math.inf,
            exit_code=_exit_code(found.get("exit_code")),
            gres=tuple(map(parse_gres, found.get("gres_detail") or ())),
            mark=JobMark.read(str(found.get("name") or ""), str(found.get("comment") or "")),
            listed_at=listed_at,
            log=str(found.get("standard_output") or ""),
            leader=int(_number(found.get("het_job_id"))),
            component=int(_number(found.get("het_job_offset"))),
        )

    @classmethod
    def from_sacct(cls, found: Mapping[str, Any]) -> Self:
        """Read one entry of ``sacct --json``, of a job that slurmctld does not know (any more).

        Without an end, it was lost in a crash of slurmctld, and never gets one. Nodes end such
        jobs when they register again.
        """
        times, state = found.get("time") or {}, found.get("state") or {}
        het = found.get("het") or {}
        current = _state(state.get("current"))
        comment = (found.get("comment") or {}).get("job")
        return cls(
            id=int(_number(found["job_id"])),
            state=current if current in _ENDED else _FORGOTTEN,
            node=str(found.get("nodes") or ""),
            submitted_at=_number(times.get("submission")),
            started_at=_number(times.get("start")),
            ended_at=_number(times.get("end")),
            reason=str(state.get("reason") or ""),
            exit_code=_exit_code(found.get("exit_code")),
            mark=JobMark.read(str(found.get("name") or ""), str(comment or "")),
            leader=int(_number(het.get("job_id"))),
            component=int(_number(het.get("job_offset"))),
        )

    @property
    def has_ended(self) -> bool:
        """Whether no process of it is left."""
        return self.state in _ENDED

    @property
    def is_pending(self) -> bool:
        return self.state in _PENDING

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids under which Slurm lists it: those of its components, if it has any."""
        return tuple(part.id for part in self.parts) or (self.id,)

    @property
    def is_gang(self) -> bool:
        """Whether its members are steps, so that its batch script gets no signals."""
        return self.mark is not None and bool(self.mark.members)

    def devices_by_node(self) -> Iterator[tuple[str, Gres]]:
        """Yield its devices with the name of their node."""
        for node, found in zip(hostnames(self.node), self.gres, strict=False):
            for gres in found:
                yield node, gres

    def part_of(self, rank: int) -> SlurmJob:
        """Return the component with a member of a gang, or the job if that is not known."""
        for part in self.parts:
            if part.mark is not None and rank in part.mark.members:
                return part
        return self

    @property
    def handle(self) -> Handle:
        """Its id and the time of its submission, which tell it from a later job of the same id."""
        return Handle(pid=self.id, started_at=self.submitted_at)

    def why_waiting(self) -> str:
        """Return why it is pending, as a sentence; empty for another state."""
        if not self.is_pending:
            return ""
        code = self.reason.split(",")[0]
        words = _REASONS.get(code)
        told = words or "Slurm gives the reason"
        return f"It waits in Slurm's queue as job {self.id}: {told} ({code})."

    def status(self) -> AttemptStatus:
        """Return the status of its attempt."""
        if not self.has_ended:
            pending = self.is_pending
            return AttemptStatus(
                life=ProcessState.ALIVE,
                handle=self.handle,
                waiting=self.why_waiting(),
                expected_at=(self.started_at or None) if pending else None,
                started_at=None if pending else self.started_at or None,
                seen_at=None if pending else self._seen_at(),
            )
        never_ran = not self.node or self.started_at >= self.ended_at > 0
        return AttemptStatus(
            life=ProcessState.DEAD,
            exit_status=self._exit_status(),
            cause=self._cause(),
            lost=self._loss(),
            started_at=None if never_ran else self.started_at or None,
            ended_at=0.0 if never_ran else self.ended_at or None,
        )

    def _seen_at(self) -> float:
        """Return until when it is certainly charged by Slurm: a whole second, as its end will be.

        Slurm charges nothing after the end of a job that is still completing.
        """
        return float(math.floor(min(self.listed_at, self.ended_at or math.inf)))

    def _exit_status(self) -> int | None:
        if self.state not in ("COMPLETED", "FAILED"):
            return None
        number = self.exit_code & 0x7F
        return -number if number else self.exit_code >> 8

    def _loss(self) -> str:
        words = _LOSSES.get(self.state, "")
        return f"{words} ({self._origin})." if words else ""

    @property
    def _origin(self) -> str:
        if self.state == _FORGOTTEN:
            return f"job {self.id} of Slurm"
        return f"Slurm's state {self.state} of job {self.id}"

    def _cause(self) -> Cause | None:
        if (cause := prologue_cause(self._exit_status())) is not None:
            return cause
        match self.state:
            case "OUT_OF_MEMORY":
                code = CauseCode.OUT_OF_MEMORY
                words = "It used more memory than it may"
            case "TIMEOUT" | "DEADLINE":
                code, words = CauseCode.TIME_LIMIT, "Slurm ended it at its time limit"
            case "CANCELLED":
                code, words = CauseCode.CANCELLED, "It was cancelled in Slurm, not through Carrel"
            case _:
                return None
        return Cause(code=code, message=f"{words} (state {self.state} of job {self.id}).")


def prologue_cause(exit_status: int | None) -> Cause | None:
    """Return the cause of an end with the exit status of a prologue that failed."""
    if exit_status != PROLOGUE_FAILED:
        return None
    message = (
        "The commands that this site runs before each session and job failed: an administrator "
        "can read why in its log, and mend prologue below [slurm] in carrel.toml."
    )
    return Cause(code=CauseCode.START_FAILED, message=message)


def by_lease(jobs: tuple[SlurmJob, ...], installation: str) -> dict[str, SlurmJob]:
    """Return the newest job of each lease of an installation; one that lives comes first."""
    components: dict[tuple[str, int], list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.mark is not None and job.mark.installation == installation:
            components[job.mark.lease, job.leader or job.id].append(job)
    found: dict[str, SlurmJob] = {}
    whole = [(lease, _together(parts)) for (lease, _), parts in components.items()]
    for lease, job in sorted(
        whole, key=lambda each: (not each[1].has_ended, each[1].submitted_at, each[1].id)
    ):
        found[lease] = job
    return found


def _together(components: Sequence[SlurmJob]) -> SlurmJob:
    """Return one job for its components: it lives while one of them does, and is lost with one."""
    if not components[0].leader:
        return components[0]
    parts = sorted(components, key=lambda each: each.component)
    living = [part for part in parts if not part.has_ended]
    lost = [part for part in parts if part.state in _LOSSES]
    first, shown = parts[0], (living or lost or parts)[0]
    marks = [part.mark for part in parts if part.mark is not None]
    members = {rank: node for mark in marks for rank, node in mark.members.items()}
    return replace(
        shown,
        id=first.leader,
        submitted_at=first.submitted_at,
        ended_at=shown.ended_at if living else max(part.ended_at for part in parts),
        log=first.log,
        mark=replace(
            marks[0],
            devices=tuple(device for mark in marks for device in mark.devices),
            members=members,
        ),
        parts=tuple(parts),
    )


def _state(found: Any) -> str:
    names = found if isinstance(found, list) else [found]
    names = [str(name).upper() for name in names if name]
    # Flags such as COMPLETING follow the base state, and mean that processes may be left.
    return next((name for name in names if name not in _ENDED), names[0] if names else "")


def _number(found: Any) -> float:
    """Return a number; 0 for one that is not set. Since 23.02 they are objects."""
    if isinstance(found, Mapping):
        return float(found.get("number") or 0) if found.get("set") else 0.0
    return float(found or 0)


def _exit_code(found: Any) -> int:
    if not isinstance(found, Mapping):
        return int(found or 0)
    number = found.get("signal") or {}
    number = number.get("signal_id", number.get("id")) if isinstance(number, Mapping) else 0
    status = found.get("status")
    if status in ("SIGNALED", ["SIGNALED"]) or int(_number(number)):
        return int(_number(number)) & 0x7F
    return int(_number(found.get("return_code"))) << 8
