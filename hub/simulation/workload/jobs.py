"""What a trace says: one job that somebody submitted, how large it was and how long it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...scheduling.model.snapshot import Arrangement, Kind, PriorityClass, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """That a job consists of equal members, each of which sits within one node.

    Attributes:
        members: how many it would like; they have the devices of the job together.
        minimum: with how many it still starts, where a policy knows of that.
    """

    members: int
    minimum: int
    arrangement: Arrangement = Arrangement.PACK


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One job of a trace.

    Attributes:
        id: unique within the trace.
        user: who submitted it; empty where the trace does not say.
        tenant: virtual cluster, course or lab; empty where the trace has only one.
        devices: how many whole devices, of all members of a gang together, or 1 with a ``share``.
        seconds: how long it ran once it had them, cut to whole seconds; a gang that starts with
            fewer members runs as long.
        submitted_at: seconds on the trace's own clock.
        limit: the time limit that was asked for; None where the trace knows none.
        model: only devices of this model will do.
        gang: None where the trace does not say how its devices lie: on one node, or on whole
            nodes where one is too small.
        share: a part of one device.
        deadline: when it should have ended; None where nobody said.
        preemptible: whether Carrel's own policy may stop it; other policies do as they do.
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
        """In devices, of which a share is only a part."""
        return self.devices if self.share is None else self.share.compute


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that was skipped because it could not be understood."""

    number: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was read, in the order of submission; equal moments keep the order of the file.

    Attributes:
        name: of the file, for reports.
        left_out: lines in good order that are no job for a scheduler, counted by reason.
        bad: lines that were skipped.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    bad: tuple[BadLine, ...] = ()
