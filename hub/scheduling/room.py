"""Whether the quotas leave room for a request next to what is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .model import Group, Kind, Reason, Waiting
from .quota import THOUSAND, Tally, Tree, size

Key = tuple[str, str | None]
"""A limit that many share: of a group, or of one owner in a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRoom:
    """The limit that keeps a request from starting now.

    Attributes:
        reason: which limit.
        group: whose limit it is: the request's own group or one above.
        for_good: True where the request alone is larger than the limit, so that waiting for
            others does not help.
    """

    reason: Reason
    group: str
    for_good: bool


def room(
    request: Waiting, tree: Tree, tally: Tally, budgets: Mapping[str, float] | None = None
) -> NoRoom | None:
    """The limit that keeps a request from starting next to what is held; None if it may.

    1. a group that is missing, or has a missing one above, permits nothing
    2. a limit that the request alone exceeds: it was lowered after the request was admitted
    3. from its own group upwards, in each group: what its owner holds, how many sessions of
       its owner have devices, what the group holds (its maximum, or its guarantee and what it
       may borrow, as Kueue's nominal quota and borrowing limit), what is left of its budget

    The nearest limit is named because no other one matters before it gives way. A request
    for no device only needs a group.

    ``budgets`` says how many device-seconds each group has left when all that runs has used
    its time limit. Whoever starts on the last of it may be told to stop before its own ends.
    """
    chain = tree.chain(request.group)
    if not chain:
        return NoRoom(reason=Reason.GROUP_MAXIMUM, group=request.group, for_good=True)
    if request.devices == 0:
        return None
    return _for_good(chain, request) or _for_now(chain, request, tally, budgets or {})


def cap(group: Group) -> int:
    """What a group may hold at all, in thousandths of a device."""
    if group.borrowing is None:
        return group.max_devices * THOUSAND
    return min(group.max_devices, group.guaranteed + group.borrowing) * THOUSAND


def cap_of_one(group: Group) -> int:
    """What one member may hold in a group, in thousandths of a device."""
    return group.max_devices_per_user * THOUSAND


def _for_good(chain: tuple[Group, ...], request: Waiting) -> NoRoom | None:
    weight = size(request.devices, request.share)
    for group in chain:
        if weight > cap_of_one(group):
            return NoRoom(reason=Reason.USER_MAXIMUM, group=group.name, for_good=True)
        if weight > cap(group):
            return NoRoom(reason=Reason.GROUP_MAXIMUM, group=group.name, for_good=True)
    return None


def _for_now(
    chain: tuple[Group, ...], request: Waiting, tally: Tally, budgets: Mapping[str, float]
) -> NoRoom | None:
    weight = size(request.devices, request.share)
    for group in chain:
        own = (group.name, request.owner)
        if tally.users[own] + weight > cap_of_one(group):
            return NoRoom(reason=Reason.USER_MAXIMUM, group=group.name, for_good=False)
        most = group.max_sessions
        if most is not None and request.kind is Kind.SESSION and tally.sessions[own] >= most:
            return NoRoom(reason=Reason.SESSIONS, group=group.name, for_good=False)
        held = tally.groups[group.name] + weight
        if held > cap(group):
            full = held > group.max_devices * THOUSAND
            reason = Reason.GROUP_MAXIMUM if full else Reason.BORROWING
            return NoRoom(reason=reason, group=group.name, for_good=False)
        if budgets and budgets.get(group.name, 1.0) <= 0:
            return NoRoom(reason=Reason.BUDGET, group=group.name, for_good=False)
    return None
