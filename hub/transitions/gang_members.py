"""Transitions of the members of a gang: one joins, and one ends.

A gang runs once all its members have joined: until then, each of them waits and executes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..errors import NotFound, StaleEpoch
from ..records.gangs import GangMember, MemberEnd
from ..records.json_value import Json
from ..records.leases import Handle, LeaseRecord
from ..records.requests import RequestRecord
from ..scheduling.model.states import Move, State, after
from .lifecycle import MOST_DETAILS, MOST_MESSAGE, newest, start, storable_text
from .transition import EventDraft, Transition

MEMBER_EVENT = "member"
"""Kind of the event in the history of a request when a member ended."""
_MOST_CODE: Final = 64


def join(
    request: RequestRecord,
    lease_id: str,
    rank: int,
    handle: Handle,
    *,
    address: str,
    port: int,
    now: float,
) -> Transition:
    """Record the runner of a member; the last one moves the gang from ``starting`` to ``running``.

    The same handle again changes nothing.

    Raises:
        StaleEpoch: the lease is not the newest, another process runs as this member, or the member
            has ended.
        NotFound: the gang has no such member.
    """
    lease = newest(request, lease_id)
    member = member_of(lease, rank)
    if member.end is not None:
        raise StaleEpoch(f"{_capital(member.name)} of {request.id} has ended.")
    known = lease.handle_of(member)
    if known == handle:
        return Transition(at=now, request=request)
    if known is not None:
        raise StaleEpoch(
            f"Process {known.pid} already runs as {member.name} of {request.id}; "
            f"process {handle.pid} may not."
        )
    if request.state is not State.STARTING:
        after(request.state, Move.START)  # raises IllegalMove
    joined = replace(
        member,
        pid=handle.pid,
        process_started_at=handle.started_at,
        address=address,
        port=port,
        joined_at=now,
    )
    lease = _with(lease, joined)
    request = replace(request, lease=lease)
    first = lease.handle_of(lease.members[0])
    if first is None or any(each.joined_at is None for each in lease.members):
        return Transition(at=now, request=request)
    return start(request, lease_id, first, now=now)


def end_member(
    request: RequestRecord, lease_id: str, rank: int, end: MemberEnd, *, now: float
) -> Transition:
    """Record how a member ended; the first record is kept, within the limits of a cause.

    Raises:
        StaleEpoch: the lease is not the newest.
        NotFound: the gang has no such member.
    """
    lease = newest(request, lease_id)
    member = member_of(lease, rank)
    if member.end is not None:
        return Transition(at=now, request=request)
    end = MemberEnd(
        code=storable_text(end.code)[:_MOST_CODE],
        message=storable_text(end.message)[:MOST_MESSAGE],
        details=storable_text(end.details)[-MOST_DETAILS:],
    )
    ended = replace(member, end=end, ended_at=now)
    data: dict[str, Json] = {
        "rank": rank,
        "role": member.role,
        "number": member.number,
        "node": member.node,
        "code": end.code,
        "message": end.message,
    }
    return Transition(
        at=now,
        request=replace(request, lease=_with(lease, ended)),
        events=(EventDraft(kind=MEMBER_EVENT, data=data),),
    )


def member_of(lease: LeaseRecord, rank: int) -> GangMember:
    """Return a member by its rank. Raises NotFound."""
    if rank >= len(lease.members):
        raise NotFound(f"{lease.request_id} has no member {rank}.")
    return lease.members[rank]


def _with(lease: LeaseRecord, member: GangMember) -> LeaseRecord:
    members = (member if each.rank == member.rank else each for each in lease.members)
    return replace(lease, members=tuple(members))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
