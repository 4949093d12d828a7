"""Jobs of a trace: submission, size, duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...scheduling.model.snapshot import Arrangement, Kind, PriorityClass, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Equal members of a job, each of which fits on one node.

    Attributes:
        members: wanted number of members; they share the devices of the job.
        minimum: smallest number with which it starts, if a policy supports that.
    """

    members: int
    minimum: int
    arrangement: Arrangement = Arrangement.PACK


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One job of a trace.

    Attributes:
        id: unique within the trace.
        user: empty if the trace does not have it.
        tenant: virtual cluster, course or lab; empty if the trace has only one.
        devices: whole devices of all members of a gang together, or 1 with a ``share``.
        seconds: runtime, cut to whole seconds; a gang that starts with fewer members runs as long.
        submitted_at: seconds on the clock of the trace.
        limit: requested time limit in seconds; None if the trace has none.
        model: required device model.
        gang: None if the trace does not describe the placement: on one node, or on whole nodes if
            one is too small.
        share: part of one device.
        deadline: when it should have ended; None for none.
        preemptible: whether Carrel's own policy may preempt it; other policies ignore this.
    """

    id: str
    user: str
    tenant: str
    devices: int
    seconds: float
    submitted_at: float
    limit: float | None = None
    model: str | None = None
    gang: Gang | None = None
    share: Share | None = None
    kind: Kind = Kind.JOB
    priority: PriorityClass = PriorityClass.NORMAL
    preemptible: bool = True
    deadline: float | None = None

    @property
    def size(self) -> float:
        """Number of devices; a share counts in proportion."""
        return self.devices if self.share is None else self.share.compute


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A malformed line that was skipped."""

    number: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The jobs that were read, in the order of submission; equal times keep the order of the file.

    Attributes:
        name: name of the file, for reports.
        left_out: valid lines that are not jobs, counted by reason.
        bad: malformed lines that were skipped.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    bad: tuple[BadLine, ...] = ()
