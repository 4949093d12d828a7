"""A job during a simulation: work done, work left, and its time spans on devices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...scheduling.model.snapshot import Arrangement, GangRole, PendingRequest
from ...scheduling.placement.device_pool import Placement
from ...scheduling.placement.gangs import is_elastic
from .jobs import TraceJob

EVERYBODY = "everybody"
"""The group of jobs without a tenant."""


@dataclass(slots=True, eq=False, kw_only=True)
class Run:
    """A job during a simulation, as policies and metrics see it.

    Attributes:
        number: position in the order of submission, the last tie-break everywhere.
        request: the same job as a request of Carrel's scheduler.
        expected_seconds: runtime estimate; constant.
        placement: its devices while it runs.
        since: when it last started.
        held: devices that it has, or had last: fewer than its size for a gang with fewer members.
        used: device-seconds until its last stop.
        left: seconds of work left at its last stop, by the trace.
        turn: incremented by every start and stop; an event of an earlier turn is void.
        lost: device-seconds of work that was repeated after stops.
        again: seconds of work that was repeated after stops.
        spans: starts and ends of its runs.
        sizes: number of devices by span.
    """

    number: int
    job: TraceJob
    request: PendingRequest
    expected_seconds: float
    left: float
    placement: Placement | None = None
    since: float = 0.0
    held: float = 0.0
    ended_at: float | None = None
    used: float = 0.0
    turn: int = 0
    preemptions: int = 0
    lost: float = 0.0
    again: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    def attained(self, now: float) -> float:
        """Return the device-seconds used so far."""
        if self.placement is None:
            return self.used
        return self.used + (now - self.since) * self.held

    def remaining(self, now: float) -> float:
        """Return the seconds that it will still run, by the trace; only an oracle knows them."""
        return self.left if self.placement is None else self.left - (now - self.since)

    @property
    def done(self) -> float:
        """Device-seconds of work done until its last stop, without lost work.

        They are counted with all members, since a gang runs as long with fewer members.
        """
        return max(0.0, self.job.seconds - self.left) * self.job.size

    def start(self, placement: Placement, now: float) -> None:
        self.placement = placement
        self.since = now
        self.held = self.job.size if self.job.share else len(placement.devices)
        self.turn += 1

    def end(self, now: float) -> None:
        self._leave(now)
        self.left = 0.0
        self.ended_at = now

    def stop(self, now: float, restart_cost: float) -> None:
        """Stop the run; ``restart_cost`` seconds of work will be repeated."""
        self.left = max(0.0, self.remaining(now)) + restart_cost
        self.lost += restart_cost * self.held
        self.again += restart_cost
        self.preemptions += 1
        self._leave(now)

    def _leave(self, now: float) -> None:
        self.used = self.attained(now)
        self.spans.append((self.since, now))
        self.sizes.append(self.held)
        self.placement = None
        self.turn += 1


def request_of(
    job: TraceJob, *, node: int, expected: float, limit: float, restart_cost: float = 0.0
) -> PendingRequest:
    """Return the request of a job; a job larger than a node becomes a gang of whole nodes.

    Args:
        node: number of devices (of the requested model) of the largest node.
    """
    return PendingRequest(
        id=job.id,
        kind=job.kind,
        owner=job.user or group_of(job),
        group=group_of(job),
        devices=job.devices,
        seconds=limit,
        submitted_at=job.submitted_at,
        model=job.model,
        expected=min(expected, limit),
        preemptible=job.preemptible,
        restart_cost=restart_cost,
        priority=job.priority,
        deadline=job.deadline,
        gang=_roles(job, node),
        arrangement=Arrangement.PACK if job.gang is None else job.gang.arrangement,
        share=job.share,
    )


def group_of(job: TraceJob) -> str:
    return job.tenant or EVERYBODY


def whole(request: PendingRequest) -> PendingRequest:
    """Return a gang that starts only with all wanted members; other requests are unchanged."""
    if not is_elastic(request):
        return request
    gang = tuple(replace(role, minimum=role.wanted) for role in request.gang)
    return replace(request, gang=gang)


def _roles(job: TraceJob, node: int) -> tuple[GangRole, ...]:
    if job.gang is None:
        return whole_nodes(job.devices, node)
    if job.gang.members == 1:
        return ()
    return (
        GangRole(
            name="member",
            devices=job.devices // job.gang.members,
            wanted=job.gang.members,
            minimum=job.gang.minimum,
        ),
    )


def whole_nodes(devices: int, node: int) -> tuple[GangRole, ...]:
    """Return roles for as many whole nodes as possible and a rest; empty if one node suffices."""
    if not 0 < node < devices:
        return ()
    count, rest = divmod(devices, node)
    roles = (GangRole(name="node", devices=node, wanted=count, minimum=count),)
    return (*roles, GangRole(name="rest", devices=rest)) if rest else roles
