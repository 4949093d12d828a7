"""Quota check: whether the limits of a group and its owner leave headroom for a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.plan import Reason
from ..model.snapshot import Group, Kind, PendingRequest
from .tree import THOUSAND, GroupTree, Tally, group_max, size

Key = tuple[str, str | None]
"""A limit that several requests share: of a group, or of one owner in a group."""

_SESSION = Kind.SESSION  # As in ``dispatch``.


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """The limit that keeps a request from starting now.

    Attributes:
        reason: which limit.
        group: the group whose limit it is: the request's own or one above.
        permanent: the request alone exceeds the limit, so that waiting does not help.
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
    """Return the limit that keeps a request from starting now; None if it may start.

    1. A group that is missing, or has a missing group above, permits nothing.
    2. A limit that the request exceeds alone: it was lowered after admission.
    3. In every group, from its own upwards: devices of its owner, sessions with devices of its
       owner, devices of the group (max quota, or guaranteed quota plus borrowing limit), budget.

    The nearest limit is named, because no other one matters before it has headroom. A request
    without devices only needs a group.

    ``budgets``: device-seconds that groups have left when all running requests have used their time
    limits. A request that starts on the rest of a budget may be stopped before its own limit.
    """
    chain = tree.chain(request.group)
    if not chain:
        return LimitReached(reason=Reason.GROUP_MAXIMUM, group=request.group, permanent=True)
    if request.devices == 0:
        return None
    return _exceeded_alone(chain, request) or _exceeded_now(chain, request, tally, budgets or {})


def group_cap(group: Group) -> int:
    """Return the max quota of a group, in thousandths of a device."""
    return group_max(group) * THOUSAND


def group_cap_covers_pool(group: Group, pool_size: int) -> bool:
    """Return whether the limit of a group is its ``max_devices`` and as large as the pool.

    When such a limit is reached, devices are missing rather than headroom.
    """
    return group_cap(group) >= pool_size and group_cap(group) == group.max_devices * THOUSAND


def member_cap(group: Group) -> int:
    """Return the max quota of one member in a group, in thousandths of a device."""
    return group.max_devices_per_user * THOUSAND


def member_cap_covers_pool(group: Group, pool_size: int) -> bool:
    """Return whether the limit of one member in a group is as large as the pool."""
    return member_cap(group) >= pool_size


class Caps:
    """The limits along the chain of every group, computed once for one tree and pool."""

    def __init__(self, tree: GroupTree, pool_size: int) -> None:
        """``pool_size``: schedulable devices, in thousandths of a device."""
        self._tree, self.pool_size = tree, pool_size
        self._groups: dict[str, tuple[tuple[str, int, bool], ...]] = {}
        self._members: dict[str, tuple[tuple[str, int, bool, int | None], ...]] = {}

    def of_groups(self, name: str) -> tuple[tuple[str, int, bool], ...]:
        """Return the groups of a chain with their limits, and whether those cover the pool."""
        found = self._groups.get(name)
        if found is None:
            found = self._groups[name] = tuple(
                (each.name, group_cap(each), group_cap_covers_pool(each, self.pool_size))
                for each in self._tree.chain(name)
            )
        return found

    def of_member(self, name: str) -> tuple[tuple[str, int, bool, int | None], ...]:
        """Return the groups of a chain with their limits for one member.

        With each: the limit, whether it covers the pool, and the limit of sessions with devices.
        """
        found = self._members.get(name)
        if found is None:
            found = self._members[name] = tuple(
                (
                    each.name,
                    member_cap(each),
                    member_cap_covers_pool(each, self.pool_size),
                    each.max_sessions,
                )
                for each in self._tree.chain(name)
            )
        return found


class HeadroomCache:
    """Headroom of owners and groups, cached while nothing starts or ends.

    Equivalent to ``limit_reached``, but faster: the headroom is the same for all requests of one
    owner in one group, except that sessions have a limit of their own.
    """

    def __init__(self, caps: Caps, tally: Tally, budgets: Mapping[str, float]) -> None:
        self._caps, self._tally, self._budgets = caps, tally, budgets
        self._left: dict[tuple[str, str, bool], tuple[int, int]] = {}
        self._groups: dict[str, tuple[int, int]] = {}

    def clear(self) -> None:
        self._left.clear()
        self._groups.clear()

    def left(self, request: PendingRequest) -> tuple[int, int]:
        """Return the headroom of a request under all limits, and under those below the pool size.

        Both are in thousandths of a device, and at most the pool size.
        """
        key = (request.group, request.owner, request.kind is _SESSION)
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._of_owner(*key)
        return left

    def _of_owner(self, group: str, owner: str, is_session: bool) -> tuple[int, int]:
        held = self._tally.users
        left, smaller = self.of_groups(group)
        left = min(left, self._caps.pool_size)
        for name, most, as_large, sessions in self._caps.of_member(group):
            if is_session and sessions is not None:  # noqa: SIM102 - the look-up is expensive
                if self._tally.sessions[name, owner] >= sessions:
                    return -1, -1
            own = most - held.get((name, owner), 0)
            left = min(left, own)
            if not as_large:
                smaller = min(smaller, own)
        return left, smaller

    def of_groups(self, group: str) -> tuple[int, int]:
        """``left`` under the limits of a group and all groups above it, for any owner."""
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
        return min(left)[0], min((self._caps.pool_size, *smaller))


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
