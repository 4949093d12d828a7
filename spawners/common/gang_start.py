"""Start the members of a gang one by one, and none of them if one cannot be started."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from ...hub.attempts.spec import MemberSpec
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend import LaunchOrder
from ...hub.records.leases import Handle

log = logging.getLogger(__name__)


class Starter(Protocol):
    """The part of a backend that starts and stops single process groups."""

    def start(self, order: LaunchOrder) -> Handle: ...

    def stop(self, lease_id: str, handle: Handle | None) -> bool: ...


def start_members(starter: Starter, orders: Sequence[LaunchOrder]) -> dict[str, Handle]:
    """Start all members, or none; return their handles by id.

    Raises:
        BackendFailed: a member could not be started, and no member runs.
        Unavailable: a member may run.
    """
    started: dict[str, Handle] = {}
    for order in orders:
        try:
            started[order.lease_id] = starter.start(order)
        except BackendFailed as error:
            ended = [starter.stop(name, handle) for name, handle in started.items()]
            why = f"{member_name(order)}: {error}"
            if not all(ended):
                raise Unavailable(f"{why} Other members do not end.") from error
            raise BackendFailed(why) from error
    return started


def member_spec(order: LaunchOrder) -> MemberSpec | None:
    """Return what the runner of a member knows; None for a job of one member."""
    member = order.member
    if member is None:
        return None
    return MemberSpec(
        rank=member.rank,
        size=member.size,
        role=member.role,
        number=member.number,
        role_size=member.role_size,
        subnet=member.subnet,
    )


def member_name(order: LaunchOrder) -> str:
    """Return the name of a member for messages."""
    member = order.member
    return order.lease_id if member is None else f"Member {member.number} of {member.role}"
