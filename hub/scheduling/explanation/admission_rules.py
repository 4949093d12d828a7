"""Admission: reject requests that could never run, and say what would be accepted.

Every admitted request can be started by the scheduling cycle; a property test compares the two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from ..model.snapshot import Device, Group, Health, Kind, PendingRequest, Share, Snapshot
from ..model.text import hours, number, plural, span
from ..placement.device_pool import largest_node
from ..queue.cycle_state import CycleState
from ..quota.tree import GroupTree, group_max, in_devices, size


def reachable(group: str, groups: Iterable[Group], devices: Iterable[Device]) -> ReachableCapacity:
    """Return the most devices that a request of a group can get if all devices work and are
    free."""
    repaired = tuple(replace(each, health=Health.OK, marks=()) for each in devices)
    state = CycleState(Snapshot(devices=repaired, groups=tuple(groups)), 0.0)
    if not state.tree.chain(group):
        return ReachableCapacity(preemptible=0, non_preemptible=0)

    def most(*, preemptible: bool) -> int:
        sizes = range(1, len(repaired) + 1)
        return bisect_left(sizes, True, key=_refused(state, group, preemptible=preemptible))

    return ReachableCapacity(
        preemptible=most(preemptible=True), non_preemptible=most(preemptible=False)
    )


def _refused(state: CycleState, group: str, *, preemptible: bool) -> Callable[[int], bool]:
    def refused(devices: int) -> bool:
        request = PendingRequest(
            id="",
            kind=Kind.JOB,
            owner="",
            group=group,
            devices=devices,
            seconds=1.0,
            submitted_at=0.0,
            preemptible=preemptible,
        )
        return not state.keeps_reserved(request) or state.hold_reason(request) is not None

    return refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableCapacity:
    """The most devices that one request of a group can get if nothing else is allocated.

    Attributes:
        preemptible: of a preemptible request: without quota that other groups do not lend.
        non_preemptible: of any other request: without the guaranteed quotas of other groups.
    """

    preemptible: float
    non_preemptible: float

    def of(self, *, preemptible: bool) -> float:
        return self.preemptible if preemptible else self.non_preemptible


EVERYTHING = ReachableCapacity(preemptible=inf, non_preemptible=inf)


class Rule(StrEnum):
    """The admission rule that rejected a request."""

    UNKNOWN_GROUP = "unknown_group"
    DEVICES = "devices"
    """Not a whole number, or negative."""
    SECONDS = "seconds"
    """Not more than 0."""
    SECONDS_MAXIMUM = "seconds_maximum"
    GROUP_MAXIMUM = "group_maximum"
    USER_MAXIMUM = "user_maximum"
    UNKNOWN_MODEL = "unknown_model"
    FORBIDDEN_MODEL = "forbidden_model"
    """Its groups may not use the model."""
    NEEDLESS_MODEL = "needless_model"
    """A model without a device."""
    NODE_MAXIMUM = "node_maximum"
    """More devices than any node has."""
    BUDGET = "budget"
    """More than the whole budget of a period."""
    GUARANTEED_TO_OTHERS = "promised"
    """More than remains beside the guaranteed quota of others, or quota that they do not lend."""
    SESSIONS = "no_sessions"
    """A session with devices, and none are allowed."""


MALFORMED = frozenset(
    {Rule.UNKNOWN_GROUP, Rule.DEVICES, Rule.SECONDS, Rule.UNKNOWN_MODEL, Rule.NEEDLESS_MODEL}
)
"""Rules about invalid requests; the others are about limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Rejection of a request that can never run: the reason and the accepted values, as sentences.

    Attributes:
        group: the group with the limit; empty if the rule is not about a group.
    """

    rule: Rule
    message: str
    accepted: str
    group: str = ""


def admit(
    *,
    groups: Iterable[Group],
    pool: Iterable[Device],
    group: str,
    devices: float,
    seconds: float,
    model: str | None = None,
    kind: Kind = Kind.JOB,
    preemptible: bool = False,
    reach: ReachableCapacity = EVERYTHING,
    share: Share | None = None,
) -> Refusal | None:
    """Return why a request can never run with these groups and devices, or None if it can.

    It is compared with limits and sizes, not with current allocations or faults: a request that
    only has to wait is admitted, and a broken device counts, since it may be repaired. The first
    violated rule is returned, and the values that it accepts pass all rules:

    1. The group and every group above exist.
    2. Devices are a whole number, 0 or more.
    3. The time limit is more than 0, and within the limit of every group of the chain.
    4. For a session with devices, every group of the chain allows a member such sessions.
    5. Devices are within the max quota of every group of the chain, then within its max quota of
       one member.
    6. The pool has the model, and one node has enough devices that the group may use.
    7. Devices are within the reachable capacity of the group (``reachable``).
    8. Until its time limit it uses no more than the whole budget of any group of the chain.

    A share counts as one device, except for a budget, which it uses in proportion.
    """
    tree = GroupTree(groups)
    chain = tree.chain(group)
    if not chain:
        return _unknown_group(tree, group)
    no_sessions = _no_sessions(chain, kind)
    most = 0 if no_sessions else reach.of(preemptible=preemptible)
    refusal = _shape(chain, devices, seconds, most)
    if refusal is not None or devices == 0:
        return refusal
    pool, devices, usable = tuple(pool), int(devices), tree.models(group)
    models = (model,) if model or usable is None else usable
    in_node = max((largest_node(pool, each) for each in models), default=0)
    allowed = map(_member_max, chain)
    accepted = _from_zero_to(int(min(in_node, most, _affordable(chain, seconds), *allowed)))
    refusal = (
        no_sessions
        or _above_maximum(chain, devices)
        or _above_node(pool, devices, in_node, model, group if usable is not None else "")
        or _above_reachable(group, devices, most, preemptible=preemptible)
    )
    by_budget = _budget(chain, in_devices(size(devices, share)), seconds)
    if refusal is None or refusal.accepted:
        return refusal or by_budget
    could_borrow = kind is Kind.JOB and devices <= reach.preemptible and by_budget is None
    if refusal.rule is Rule.GUARANTEED_TO_OTHERS and could_borrow:
        accepted = f"{accepted[:-1]}, or for a job that may be preempted."
    message = f"{refusal.message}; you asked for {number(devices)}."
    return replace(refusal, message=message, accepted=accepted)


def _unknown_group(tree: GroupTree, name: str) -> Refusal:
    known = [each for each in tree.names if tree.chain(each)]
    if tree.ancestry(name):
        message = f"A group above {name} is missing, so {name} may not use anything."
    else:
        message = f"There is no group {name}."
    return Refusal(
        rule=Rule.UNKNOWN_GROUP,
        group=name,
        message=message,
        accepted=f"Groups: {', '.join(known)}." if known else "There are no groups yet.",
    )


def _member_max(group: Group) -> float:
    """The most devices that one member may use, by the limits of this group alone."""
    return min(group_max(group), group.max_devices_per_user)


def _shape(chain: tuple[Group, ...], devices: float, seconds: float, most: float) -> Refusal | None:
    """Check rules 2 and 3; comparisons are written so that a NaN fails them."""
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 0:
        allowed = map(_member_max, chain)
        return Refusal(
            rule=Rule.DEVICES,
            message="The number of devices must be a whole number, 0 or more; "
            f"you asked for {number(devices)}.",
            accepted=_from_zero_to(int(min(most, *allowed))),
        )
    shortest = min(chain, key=lambda group: group.max_seconds)
    at_most = min(devices, *map(group_max, chain))
    by_budget = _affordable(chain, at_most) if at_most else inf
    longest = _rounded(by_budget) if 1 <= by_budget < shortest.max_seconds else shortest.max_seconds
    accepted = f"Ask for at most {span(longest)}."
    if not seconds > 0:
        return Refusal(
            rule=Rule.SECONDS,
            message=f"The time limit must be more than 0; you asked for {span(seconds)}.",
            accepted=accepted,
        )
    if seconds > shortest.max_seconds:
        return Refusal(
            rule=Rule.SECONDS_MAXIMUM,
            group=shortest.name,
            message=f"{shortest.name} allows at most {span(shortest.max_seconds)} at a time; "
            f"you asked for {span(seconds)}.",
            accepted=accepted,
        )
    return None


def _no_sessions(chain: tuple[Group, ...], kind: Kind) -> Refusal | None:
    """Check rule 4."""
    name = next((group.name for group in chain if group.max_sessions == 0), None)
    if kind is not Kind.SESSION or name is None:
        return None
    return _too_many(Rule.SESSIONS, name, f"{name} allows no sessions with devices")


def _above_maximum(chain: tuple[Group, ...], devices: int) -> Refusal | None:
    """Check rule 5."""
    by_group = min(chain, key=group_max)
    by_user = min(chain, key=lambda group: group.max_devices_per_user)
    if devices > group_max(by_group):
        why = ""
        if group_max(by_group) < by_group.max_devices:
            why = f": {by_group.guaranteed} guaranteed, and {by_group.borrowing} borrowed"
        most = plural(group_max(by_group), "device")
        message = f"{by_group.name} may hold at most {most} at one time{why}"
        return _too_many(Rule.GROUP_MAXIMUM, by_group.name, message)
    if devices > by_user.max_devices_per_user:
        most = plural(by_user.max_devices_per_user, "device")
        message = f"One person may hold at most {most} in {by_user.name} at one time"
        return _too_many(Rule.USER_MAXIMUM, by_user.name, message)
    return None


def _above_node(
    pool: tuple[Device, ...], devices: int, in_node: int, model: str | None, group: str
) -> Refusal | None:
    """Check rule 6; ``group`` is set if it may not use all models."""
    if devices <= in_node:
        return None
    if model is not None and in_node == 0:
        known = ", ".join(sorted({device.model for device in pool}))
        return Refusal(
            rule=Rule.UNKNOWN_MODEL,
            message=f"The pool has no device of the model {model}.",
            accepted=f"Models: {known}." if known else "The pool has no devices; ask for 0.",
        )
    which = f" of the model {model}" if model else f" that {group} may use" if group else ""
    message = f"No node has more than {plural(in_node, 'device')}{which}"
    return _too_many(Rule.NODE_MAXIMUM, group, message if pool else "The pool has no devices")


def _above_reachable(group: str, devices: int, most: float, *, preemptible: bool) -> Refusal | None:
    """Check rule 7."""
    if devices <= most:
        return None
    why, use = "quota that other groups do not lend", ""
    if not preemptible:
        why, use = "the guaranteed quotas of other groups", " for work that cannot be preempted"
    have = f"at most {plural(int(most), 'device')}" if most else "no device"
    message = f"Because of {why}, {group} can hold {have}{use}"
    return _too_many(Rule.GUARANTEED_TO_OTHERS, group, message)


def _too_many(rule: Rule, group: str, message: str) -> Refusal:
    """Refuse too many devices; ``admit`` completes the sentence and adds the accepted numbers."""
    return Refusal(rule=rule, group=group, message=message, accepted="")


def _budget(chain: tuple[Group, ...], devices: float, seconds: float) -> Refusal | None:
    """Check rule 8."""
    budgets = [(group.name, group.budget) for group in chain if group.budget is not None]
    if not budgets or devices <= _affordable(chain, seconds):
        return None
    name, budget = min(budgets, key=lambda each: each[1].device_seconds)
    message = (
        f"{name} has a budget of {hours(budget.device_seconds)} device-hours in a {budget.period}; "
        f"you asked for {hours(devices * seconds)} device-hours ({plural(devices, 'device')} for "
        f"{span(seconds)})."
    )
    longest, most = _rounded(_affordable(chain, devices)), int(_affordable(chain, seconds))
    accepted = [f"at most {span(longest)}"] if longest else []
    accepted += [f"at most {plural(most, 'device')}"] if most else []
    return Refusal(
        rule=Rule.BUDGET,
        group=name,
        message=message,
        accepted=f"Ask for {', or for '.join(accepted)}." if accepted else _from_zero_to(0),
    )


def _affordable(chain: tuple[Group, ...], device_seconds: float) -> float:
    """Return how many times the smallest budget of the chain covers these device-seconds."""
    budgets = (group.budget.device_seconds for group in chain if group.budget is not None)
    return min(budgets, default=inf) / device_seconds


def _rounded(seconds: float) -> float:
    """Round down to whole minutes, or seconds."""
    return seconds // 60 * 60 or seconds // 1


def _from_zero_to(most: int) -> str:
    return f"Ask for 0 to {most}." if most > 0 else "Ask for 0 (CPU only)."


class AdmissionRules:
    """Admission for one set of groups and devices; the reachable capacity of groups is cached."""

    def __init__(self, groups: Iterable[Group], devices: Iterable[Device]) -> None:
        self._groups, self._devices = tuple(groups), tuple(devices)
        self._tree = GroupTree(self._groups)
        self._models = {device.model for device in self._devices}
        self._reach: dict[str, ReachableCapacity] = {}

    def refusal(
        self,
        *,
        group: str,
        devices: int,
        seconds: float,
        kind: Kind,
        preemptible: bool,
        model: str | None = None,
        share: Share | None = None,
    ) -> Refusal | None:
        """Return why a request can never run; None if it can.

        1. A model is in the pool, allowed for its groups, and requested with a device.
        2. The rules of ``admit``.
        """
        refusal = None if model is None else self._of_model(group, devices, model)
        return refusal or admit(
            groups=self._groups,
            pool=self._devices,
            group=group,
            devices=devices,
            seconds=seconds,
            model=model,
            kind=kind,
            preemptible=preemptible,
            reach=self._reach_of(group) if devices else EVERYTHING,
            share=share,
        )

    def _reach_of(self, group: str) -> ReachableCapacity:
        found = self._reach.get(group)
        if found is None:
            found = self._reach[group] = reachable(group, self._groups, self._devices)
        return found

    def _of_model(self, group: str, devices: int, model: str) -> Refusal | None:
        """Check rule 1."""
        if devices == 0:
            return Refusal(
                rule=Rule.NEEDLESS_MODEL,
                message="A model needs at least one device.",
                accepted="Leave the model out, or ask for at least one device.",
            )
        allowed = self._tree.models(group)
        usable = sorted(self._models if allowed is None else self._models & allowed)
        accepted = (
            f"Any model, or one of: {', '.join(usable)}." if usable else "No model, and 0 devices."
        )
        if model not in self._models:
            return Refusal(
                rule=Rule.UNKNOWN_MODEL,
                message=f"The pool has no device of the model {model}.",
                accepted=accepted,
            )
        if model not in usable:
            return Refusal(
                rule=Rule.FORBIDDEN_MODEL,
                group=group,
                message=f"{group} may not use devices of the model {model}.",
                accepted=accepted,
            )
        return None
