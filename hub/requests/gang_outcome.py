"""Decide when a gang ends, and how, from the ends of its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ..messages.units import count
from ..records.gangs import GangMember, JobGang, MemberEnd
from ..records.notices import StopNotice
from ..records.requests import Cause, CauseCode, RequestRecord
from ..scheduling.model.states import State
from .termination import by_runner

NOT_REPORTED = frozenset({str(CauseCode.LOST), str(CauseCode.START_FAILED)})
"""Codes of members whose runner reported no end: the infrastructure failed, not the job."""


def gang_end(
    gang: JobGang, members: Sequence[GangMember], notice: StopNotice | None = None
) -> tuple[State, Cause] | None:
    """Return state and cause of a gang that has ended; None while it goes on.

    1. While a required member has disappeared, the controller stops the others, whose ends then
       mean nothing, and requeues the gang (``missing_member``).
    2. The first required member that failed ends the gang, and is named.
    3. Once all required members have succeeded, the gang has succeeded.
    """
    required = [each for each in members if gang.is_required(each.role)]
    ended = [(each, each.end) for each in required if each.end is not None]
    if any(end.code in NOT_REPORTED for _, end in ended):
        return None
    failed = [each for each, end in ended if end.code != CauseCode.SUCCEEDED]
    if failed:
        first = min(failed, key=lambda each: (each.ended_at or 0.0, each.rank))
        assert first.end is not None
        target, cause = by_runner(asdict(first.end), notice)
        if cause.code is CauseCode.HALTED:
            return target, cause
        return target, _named(first, cause)
    if all(each.end is not None and each.end.code == CauseCode.SUCCEEDED for each in required):
        message = _success(len(required), members)
        return State.SUCCEEDED, Cause(code=CauseCode.SUCCEEDED, message=message)
    return None


def missing_member(request: RequestRecord) -> GangMember | None:
    """Return the first member without which the gang cannot go on.

    It is required and its runner disappeared, or it ended before it joined: the others wait for a
    member of any role.
    """
    lease, gang = request.lease, request.gang
    if gang is None or lease is None:
        return None
    ended = ((each, each.end) for each in lease.members if each.end is not None)
    return next(
        (
            each
            for each, end in ended
            if each.joined_at is None or (gang.is_required(each.role) and end.code in NOT_REPORTED)
        ),
        None,
    )


def member_message(member: GangMember, message: str) -> str:
    """Return a message that names the member: ``Member 1 of the role worker failed: …``."""
    return f"{_capital(member.name)} failed: {message}"


def lost_end(cause: Cause | None, exit_status: int | None, tail: str, why: str = "") -> MemberEnd:
    """Return the end of a member whose runner reported none.

    Args:
        cause: the cause, if the engine knows it.
        exit_status: of the runner, if the engine saw it end.
        tail: the end of its log.
        why: why it was lost, as a sentence, if the engine knows it.
    """
    if cause is not None:
        return MemberEnd(code=str(cause.code), message=cause.message, details=cause.details or tail)
    how = "" if exit_status is None else f" (exit status {exit_status} of its runner)"
    return MemberEnd(
        code=str(CauseCode.LOST),
        message=why or f"its processes disappeared and reported no result{how}",
        details=tail,
    )


def _success(required: int, members: Sequence[GangMember]) -> str:
    """Say which members have succeeded, and how many others failed."""
    ends = [each.end for each in members if each.end is not None]
    failed = sum(end.code != CauseCode.SUCCEEDED for end in ends)
    if required == len(members):
        return f"{count(required, 'member')} ended without an error."
    which = "The member" if required == 1 else f"The {required} members"
    others = f"; {count(failed, 'other member')} failed" if failed else ""
    return f"{which} that must succeed ended without an error{others}."


def _named(member: GangMember, cause: Cause) -> Cause:
    return Cause(
        code=cause.code, message=member_message(member, cause.message), details=cause.details
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
