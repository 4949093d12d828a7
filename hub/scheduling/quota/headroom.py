"""Whether the quotas leave room for a request next to what is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.plan import Reason
from ..model.snapshot import Group, Kind, PendingRequest
from .tree import THOUSAND, GroupTree, Tally, group_max, size

Key = tuple[str, str | None]
"""A limit that many share: of a group, or of one owner in a group."""

_SESSION = Kind.SESSION  # As in ``walk``.


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """The limit that keeps a request from starting now.

    Attributes:
        reason: which limit.
        group: whose limit it is: the request's own group or one above.
        for_good: True where the request alone is larger than the limit, so that waiting for
            others does not help.
    """

    reason: Reason
    group: str
    permanent: bool


def limit_reached(
    request: PendingRequest,
    tree: GroupTree,
    tally: Tally,
    budgets: Mapping[str, float] | None = None,
) -> LimitReached | None:
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
        return LimitReached(reason=Reason.GROUP_MAXIMUM, group=request.group, permanent=True)
    if request.devices == 0:
        return None
    return _exceeded_alone(chain, request) or _exceeded_now(chain, request, tally, budgets or {})


def group_cap(group: Group) -> int:
    """What a group may hold at all, in thousandths of a device."""
    return group_max(group) * THOUSAND


def group_cap_covers_pool(group: Group, lendable: int) -> bool:
    """Whether its maximum is that of a pool with so many thousandths of a device: who finds it
    full lacks devices rather than room."""
    return group_cap(group) >= lendable and group_cap(group) == group.max_devices * THOUSAND


def member_cap(group: Group) -> int:
    """What one member may hold in a group, in thousandths of a device."""
    return group.max_devices_per_user * THOUSAND


def member_cap_covers_pool(group: Group, lendable: int) -> bool:
    """The same of what one member may hold."""
    return member_cap(group) >= lendable


class Caps:
    """The limits along the chain of each group, worked out once for one tree and pool."""

    def __init__(self, tree: GroupTree, lendable: int) -> None:
        """``lendable``: thousandths of a device that the pool has."""
        self._tree, self.lendable = tree, lendable
        self._groups: dict[str, tuple[tuple[str, int, bool], ...]] = {}
        self._members: dict[str, tuple[tuple[str, int, bool, int | None], ...]] = {}

    def of_groups(self, name: str) -> tuple[tuple[str, int, bool], ...]:
        """Each group, what it may hold, and whether that is as much as the pool has."""
        found = self._groups.get(name)
        if found is None:
            found = self._groups[name] = tuple(
                (each.name, group_cap(each), group_cap_covers_pool(each, self.lendable))
                for each in self._tree.chain(name)
            )
        return found

    def of_member(self, name: str) -> tuple[tuple[str, int, bool, int | None], ...]:
        """Each group, what one member may hold in it, whether that is as much as the pool has,
        and how many sessions with devices."""
        found = self._members.get(name)
        if found is None:
            found = self._members[name] = tuple(
                (
                    each.name,
                    member_cap(each),
                    member_cap_covers_pool(each, self.lendable),
                    each.max_sessions,
                )
                for each in self._tree.chain(name)
            )
        return found


class HeadroomCache:
    """What the limits leave, remembered while nothing starts and nothing ends.

    It says no more than ``room``, and says it at once: what is left is the same for all that
    one owner asks for in one group, sessions apart from the rest.
    """

    def __init__(self, caps: Caps, tally: Tally, budgets: Mapping[str, float]) -> None:
        self._caps, self._tally, self._budgets = caps, tally, budgets
        self._left: dict[tuple[str, str, bool], tuple[int, int]] = {}
        self._groups: dict[str, tuple[int, int]] = {}

    def clear(self) -> None:
        self._left.clear()
        self._groups.clear()

    def left(self, request: PendingRequest) -> tuple[int, int]:
        """Thousandths of a device that all limits leave to a request for devices, and that are
        left without the limits of those that may hold the whole pool; no more than it has."""
        key = (request.group, request.owner, request.kind is _SESSION)
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._of_owner(*key)
        return left

    def _of_owner(self, group: str, owner: str, is_session: bool) -> tuple[int, int]:
        held = self._tally.users
        left, smaller = self.of_groups(group)
        left = min(left, self._caps.lendable)
        for name, most, as_large, sessions in self._caps.of_member(group):
            if is_session and sessions is not None:  # noqa: SIM102 - the look-up is the dear part
                if self._tally.sessions[name, owner] >= sessions:
                    return -1, -1
            own = most - held.get((name, owner), 0)
            left = min(left, own)
            if not as_large:
                smaller = min(smaller, own)
        return left, smaller

    def of_groups(self, group: str) -> tuple[int, int]:
        """The same by the limits of a group and of all above it, whoever asks."""
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = self._of_groups(group)
        return found

    def _of_groups(self, group: str) -> tuple[int, int]:
        limits, budgets = self._caps.of_groups(group), self._budgets
        if not limits or (budgets and any(budgets.get(name, 1.0) <= 0 for name, _, _ in limits)):
            return -1, -1
        held = self._tally.groups
        left = [(own - held.get(name, 0), as_large) for name, own, as_large in limits]
        smaller = [own for own, as_large in left if not as_large]
        return min(left)[0], min((self._caps.lendable, *smaller))


def _exceeded_alone(chain: tuple[Group, ...], request: PendingRequest) -> LimitReached | None:
    weight = size(request.devices, request.share)
    for group in chain:
        if weight > member_cap(group):
            return LimitReached(reason=Reason.USER_MAXIMUM, group=group.name, permanent=True)
        if weight > group_cap(group):
            return LimitReached(reason=Reason.GROUP_MAXIMUM, group=group.name, permanent=True)
    return None


def _exceeded_now(
    chain: tuple[Group, ...], request: PendingRequest, tally: Tally, budgets: Mapping[str, float]
) -> LimitReached | None:
    weight = size(request.devices, request.share)
    for group in chain:
        own = (group.name, request.owner)
        if tally.users[own] + weight > member_cap(group):
            return LimitReached(reason=Reason.USER_MAXIMUM, group=group.name, permanent=False)
        most = group.max_sessions
        if most is not None and request.kind is Kind.SESSION and tally.sessions[own] >= most:
            return LimitReached(reason=Reason.SESSIONS, group=group.name, permanent=False)
        held = tally.groups[group.name] + weight
        if held > group_cap(group):
            full = held > group.max_devices * THOUSAND
            reason = Reason.GROUP_MAXIMUM if full else Reason.BORROWING
            return LimitReached(reason=reason, group=group.name, permanent=False)
        if budgets and budgets.get(group.name, 1.0) <= 0:
            return LimitReached(reason=Reason.BUDGET, group=group.name, permanent=False)
    return None
