"""Convert records to response bodies, limited to what the viewer may see.

Students see that a device is taken, but not by whom; teachers see their course; administrators see
everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TypedDict

from ..admission.job_fields import view_fields
from ..interfaces.files import OutputFiles
from ..inventory.pool import device_out
from ..messages import job_signs
from ..messages.requests import session_name, work_title
from ..messages.wait_reasons import position_sentence, wait_reason, wait_sentence
from ..records.events import EventRecord
from ..records.gangs import GangMember, JobGang
from ..records.identity import Viewer
from ..records.json_value import plain
from ..records.leases import JobSign, LeaseRecord
from ..records.requests import CauseCode, RequestRecord
from ..records.utilization import AttemptUtilization, UtilizationSummary
from ..scheduling.model.plan import Wait
from ..scheduling.model.snapshot import UNTIL_RELEASED, Allocation, Device, Mark
from ..scheduling.model.states import TERMINAL
from ..schemas import (
    CauseOut,
    EventOut,
    FileOut,
    FilesOut,
    GangMemberOut,
    JobSignOut,
    LeaseOut,
    ProgressOut,
    QueueEntryOut,
    RequestOut,
    RoleOut,
    UtilizationOut,
    UtilizationSeriesOut,
    WaitOut,
)
from ..schemas.requests import RemainingOut
from .notices import warning_out

_LONGEST_TITLE = 120
_MEMBER_ENDS = {
    str(CauseCode.SUCCEEDED): "succeeded",
    str(CauseCode.CANCELLED): "stopped",
    str(CauseCode.HALTED): "stopped",
}
"""The state of a member by the code of its end, if it has not failed."""
_COMPOSED = ("cause", "lease", "claim", "warning", "gang", "not_before")
"""Fields of a response body that have the name of a stored field but another form."""


def request_out(
    record: RequestRecord,
    *,
    viewer: Viewer,
    devices: Mapping[str, Device],
    wait: Wait | None,
    progress: ProgressOut | None,
    remaining: RemainingOut | None = None,
    utilization: UtilizationSummary | None = None,
    device_seconds: float,
    claim_by: float | None = None,
    drain: Mark | None = None,
    now: float,
) -> RequestOut:
    """Return the complete body of a request.

    Args:
        devices: the devices of the leases, by id.
        device_seconds: usage so far, charged and open.
        claim_by: the end of the claim window, if a device is held.
        drain: the drain that will stop the request, if there is one.
    """
    lease = record.lease
    job = record.job
    return RequestOut(
        **view_fields(record, RequestOut, without=_COMPOSED),
        **(view_fields(job, RequestOut) if job else {}),
        ends_by=lease.granted_at + record.seconds if lease and lease.released_at is None else None,
        notebook=job.notebook_name if job else "",
        output=job.output_name if job else "",
        **_gang_fields(record.gang),
        expected_seconds=record.expected,
        not_before=None if record.not_before == UNTIL_RELEASED else record.not_before,
        wait=wait_out(wait, yours=viewer.speaks_to(record.owner)) if wait else None,
        cause=_cause_out(record),
        lease=lease_out(record, lease, devices, viewer) if lease else None,
        progress=progress,
        remaining=remaining,
        utilization=UtilizationOut(**asdict(utilization)) if utilization else None,
        device_seconds=round(device_seconds, 3),
        ended=record.state in TERMINAL,
        claim=record.unclaimed,
        claim_by=claim_by,
        warning=warning_out(record, drain, now=now),
        signs=[sign_out(sign) for sign in lease.signs] if lease else [],
    )


def sign_out(sign: JobSign) -> JobSignOut:
    return JobSignOut(
        kind=sign.kind.value,
        title=job_signs.TITLES[sign.kind],
        message=job_signs.sentence(sign),
        suggestion=job_signs.SUGGESTIONS[sign.kind],
        since=sign.since,
        ended_at=sign.ended_at,
        figures=dict(plain(sign.figures)),
    )


def brief_out(
    record: RequestRecord,
    *,
    viewer: Viewer,
    wait: Wait | None,
    devices: Mapping[str, Device],
    progress: ProgressOut | None,
    remaining: RemainingOut | None = None,
    claim_by: float | None = None,
) -> RequestOut:
    """Return the body of a request in a long list."""
    job, lease = record.job, record.lease
    return RequestOut(
        id=record.id,
        kind=record.kind.value,
        owner=record.owner,
        group=record.group,
        devices=record.devices,
        model=record.model,
        seconds=record.seconds,
        state=record.state.value,
        submitted_at=record.submitted_at,
        started_at=record.started_at,
        ended_at=record.ended_at,
        server_name=record.server_name,
        notebook=job.notebook_name if job else "",
        parameters={},
        command=list(job.command) if job else [],
        labels=dict(record.labels),
        program=record.program,
        wait=wait_out(wait, yours=viewer.speaks_to(record.owner)) if wait else None,
        cause=_cause_out(record),
        lease=lease_out(record, lease, devices, viewer) if lease else None,
        progress=progress,
        remaining=remaining,
        ended=record.state in TERMINAL,
        claim=record.unclaimed,
        claim_by=claim_by,
    )


def _cause_out(record: RequestRecord) -> CauseOut | None:
    if record.cause is None:
        return None
    return CauseOut(
        code=record.cause.code.value,
        message=record.cause.message,
        details=record.cause.details,
    )


def queue_entry_out(wait: Wait, record: RequestRecord, viewer: Viewer) -> QueueEntryOut:
    """Return a queue entry; students see the requested devices of others, not the owner."""
    yours = record.owner == viewer.name
    named = viewer.may_see(record.owner, record.group, record.program)
    out = wait_out(wait, yours=yours)
    return QueueEntryOut(
        place=out.place,
        kind=record.kind.value,
        devices=record.devices,
        model=record.model,
        # The reason may name a group that the viewer may not see.
        sentence=out.sentence if named else position_sentence(out.place),
        why=out.why if named else "",
        expected_at=out.expected_at,
        latest_at=out.latest_at,
        yours=yours,
        request_id=record.id if named else None,
        owner=record.owner if named else None,
        group=record.group if named else None,
        title=title(record) if named else "",
    )


def title(record: RequestRecord) -> str:
    """Return the title of a request: notebook, command, course work or session name."""
    if (job := record.job) is not None:
        return work_title(record.kind, job.notebook_name, job.command, record.labels)[
            :_LONGEST_TITLE
        ]
    return session_name(record.server_name)


def wait_out(wait: Wait, *, yours: bool) -> WaitOut:
    """Return the wait of a request; ``yours`` addresses the viewer as the owner."""
    return WaitOut(
        place=wait.place,
        ahead=wait.ahead,
        reason=wait.reason.value,
        sentence=wait_sentence(wait, yours=yours),
        why=wait_reason(wait, yours=yours),
        expected_at=wait.estimate.at if wait.estimate else None,
        latest_at=wait.estimate.latest if wait.estimate else None,
    )


def lease_out(
    record: RequestRecord, lease: LeaseRecord, devices: Mapping[str, Device], viewer: Viewer
) -> LeaseOut:
    """Return a lease with those of its devices that the pool still has."""
    held = Allocation(
        request_id=record.id,
        owner=record.owner,
        group=record.group,
        devices=lease.devices,
        since=lease.granted_at,
        until=lease.granted_at + record.seconds,
    )
    return LeaseOut(
        id=lease.id,
        epoch=lease.epoch,
        state=lease.state.value,
        devices=[device_out(devices[d], held, viewer) for d in lease.devices if d in devices],
        granted_at=lease.granted_at,
        released_at=lease.released_at,
        pid=lease.handle.pid if lease.handle else None,
        started_at=lease.handle.started_at if lease.handle else None,
        image=record.image,
        node=lease.node,
        members=[_member_out(lease, member) for member in lease.members],
    )


class _GangFields(TypedDict, total=False):
    roles: list[RoleOut]
    arrangement: str
    must_succeed: list[str]


def _gang_fields(gang: JobGang | None) -> _GangFields:
    if gang is None:
        return {}
    roles = [
        RoleOut(
            name=role.name,
            command=list(role.command),
            devices=role.devices,
            minimum=role.minimum,
            maximum=role.wanted,
            image=role.image,
        )
        for role in gang.roles
    ]
    return {
        "roles": roles,
        "arrangement": gang.arrangement.value,
        "must_succeed": list(gang.must_succeed),
    }


def _member_out(lease: LeaseRecord, member: GangMember) -> GangMemberOut:
    end = member.end
    return GangMemberOut(
        rank=member.rank,
        role=member.role,
        number=member.number,
        state=_member_state(lease, member),
        node=member.node,
        devices=list(member.devices),
        address=member.address,
        started_at=member.joined_at,
        ended_at=member.ended_at or (lease.released_at if member.joined_at else None),
        cause=None
        if end is None
        else CauseOut(code=end.code, message=end.message, details=end.details),
    )


def _member_state(lease: LeaseRecord, member: GangMember) -> str:
    if member.end is not None:
        return _MEMBER_ENDS.get(member.end.code, "failed")
    if lease.released_at is not None:
        return "stopped"
    if all(each.joined_at is not None for each in lease.members):
        return "running"
    return "granted" if lease.launched_at is None else "starting"


def event_out(event: EventRecord) -> EventOut:
    """Return an event."""
    return EventOut(
        id=event.id,
        request_id=event.request_id,
        epoch=event.epoch,
        at=event.at,
        kind=event.kind,
        data=plain(event.data),
    )


def files_out(found: OutputFiles) -> FilesOut:
    """Return the listing of an output folder, by name."""
    return FilesOut(
        files=[
            FileOut(name=name, size=size, modified_at=at)
            for name, (size, at) in sorted(found.files.items())
        ],
        left_out=found.left_out,
    )


def utilization_out(found: AttemptUtilization) -> UtilizationSeriesOut:
    """Return the use of one attempt over time."""
    series = found.series
    return UtilizationSeriesOut(
        **asdict(series.summary),
        epoch=found.epoch,
        begins_at=found.granted_at + series.begins,
        seconds=series.seconds,
        cores=[point.cores for point in series.points],
        memory_bytes=[point.memory_bytes for point in series.points],
        device_percent=[point.device_percent for point in series.points],
        device_bytes=[point.device_bytes for point in series.points],
    )
