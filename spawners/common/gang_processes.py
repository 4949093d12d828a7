"""Leases and their members: which process groups a lease has, and the status of all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ...hub.interfaces.backend import AttemptStatus, ProcessState
from ...hub.records.gangs import split_member_id


def belongs_to(group: str, leases: Collection[str]) -> bool:
    """Whether a process group is one of these leases or of these members, or a member of one."""
    return group in leases or split_member_id(group)[0] in leases


def gang_status(members: Sequence[AttemptStatus]) -> AttemptStatus:
    """Return the status of a lease from those of its members: alive while one of them lives."""
    lives = {member.life for member in members}
    if ProcessState.ALIVE in lives:
        handles = [member.handle for member in members if member.handle is not None]
        first = min(handles, key=lambda each: (each.started_at, each.pid), default=None)
        waiting = next((member for member in members if member.waiting), None)
        return AttemptStatus(
            life=ProcessState.ALIVE,
            handle=first,
            waiting=waiting.waiting if waiting else "",
            expected_at=waiting.expected_at if waiting else None,
            started_at=_first(member.started_at for member in members),
            seen_at=_last(member.seen_at for member in members),
        )
    life = ProcessState.UNKNOWN if ProcessState.UNKNOWN in lives else ProcessState.DEAD
    return AttemptStatus(
        life=life,
        started_at=_first(member.started_at for member in members),
        ended_at=_last(member.ended_at for member in members),
    )


def _first(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)


def _last(times: Iterable[float | None]) -> float | None:
    return max((at for at in times if at is not None), default=None)


def members_in(lease_id: str, surveys: Mapping[str, Collection[str] | None]) -> list[str]:
    """Return the members of a lease that were found, by rank; empty for a lease of one member.

    Args:
        surveys: the process groups of each node; None for a node that does not answer.
    """
    found = {
        group
        for survey in surveys.values()
        for group in survey or ()
        if split_member_id(group)[0] == lease_id and group != lease_id
    }
    return sorted(found, key=lambda group: split_member_id(group)[1] or 0)
