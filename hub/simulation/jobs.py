"""What a trace says: one job that somebody submitted, how large it was and how long it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..scheduling.model import Kind, PriorityClass, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of a trace.

    Attributes:
        id: unique within the trace.
        user: who submitted it; empty where the trace does not say.
        tenant: virtual cluster, course or lab; empty where the trace has only one.
        devices: how many whole devices, or 1 with a ``share``.
        seconds: how long it ran once it had them, cut to whole seconds.
        submitted_at: seconds on the trace's own clock.
        limit: the time limit that was asked for; None where the trace knows none.
        model: only devices of this model will do.
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
    jobs: tuple[Job, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    bad: tuple[BadLine, ...] = ()
