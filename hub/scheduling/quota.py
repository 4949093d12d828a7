"""Quota: arithmetic on the tree of groups.

A limit of any group above binds too, so everything here goes along the chain from a group to
its root. A group that is unknown, or has an unknown one above it, may hold nothing: what is
missing denies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from .model import Device, Group, Holding, Kind, Share
from .placement import largest_node
from .wordforms import hours, number, plural, span


def guarantees(groups: Iterable[Group]) -> Mapping[str, int]:
    """Devices by group: its own guarantee, or that of all below it where that is more.

    What a lab is guaranteed its department has to be given as well, else the lab's promise
    would end at the department's door. Kueue counts a cohort's quota in the same way
    (``resource_node.go``). Groups in a circle count for themselves alone.
    """
    known = {group.name: group for group in groups}
    below: dict[str, list[Group]] = {name: [] for name in known}
    roots = []
    for group in known.values():
        if group.parent in known:
            below[group.parent].append(group)
        else:
            roots.append(group)
    found = {name: group.guaranteed for name, group in known.items()}
    order = list(roots)
    for group in order:
        order += below[group.name]
    for group in reversed(order):
        together = sum(found[child.name] for child in below[group.name])
        found[group.name] = max(group.guaranteed, together)
    return found


class Tree:
    """The groups of one snapshot. Chains are worked out once and kept.

    A group whose borrowing is limited is guaranteed what counts (``guarantees``): what it may
    hold leaves those below it theirs.
    """

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups = {group.name: group for group in groups}
        if limited := [each for each in self._groups.values() if each.borrowing is not None]:
            counted = guarantees(self._groups.values())
            for each in limited:
                self._groups[each.name] = replace(each, guaranteed=counted[each.name])
        self._known: dict[str, tuple[Group, ...]] = {}
        self._models: dict[str, frozenset[str] | None] = {}
        self._below: dict[str, frozenset[str]] = {}
        self._children: dict[str | None, tuple[Group, ...]] | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(self._groups.values())

    def children(self, parent: str | None) -> tuple[Group, ...]:
        """The groups right below one; below None, the roots."""
        if self._children is None:
            found: dict[str | None, list[Group]] = {}
            for group in self._groups.values():
                found.setdefault(group.parent, []).append(group)
            self._children = {name: tuple(each) for name, each in found.items()}
        return self._children.get(parent, ())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._groups))

    def known(self, name: str) -> tuple[Group, ...]:
        """A group and those above it, nearest first, as far as they are known.

        What somebody holds is counted for all of these, also where the chain is broken:
        a group that lost its parent still uses up what the group itself may hold.
        """
        if name not in self._known:
            chain: list[Group] = []
            group = self._groups.get(name)
            while group is not None and group not in chain:
                chain.append(group)
                group = self._groups.get(group.parent) if group.parent is not None else None
            self._known[name] = tuple(chain)
        return self._known[name]

    def chain(self, name: str) -> tuple[Group, ...]:
        """A group and all above it up to the root; empty where one is missing.

        Whatever asks for permission goes along this chain, and an empty one permits nothing.
        A circle has no root and is broken as well.
        """
        known = self.known(name)
        return known if known and known[-1].parent is None else ()

    def models(self, name: str) -> frozenset[str] | None:
        """The device models that a group may use, by its own word and that of all above it."""
        if name not in self._models:
            named = [group.models for group in self.known(name) if group.models is not None]
            self._models[name] = frozenset.intersection(*named) if named else None
        return self._models[name]

    def below(self, name: str) -> frozenset[str]:
        """A group and all below it, by name."""
        if name not in self._below:
            inside = (each for each in self._groups if self._has(each, name))
            self._below[name] = frozenset(inside)
        return self._below[name]

    def _has(self, below: str, name: str) -> bool:
        return any(group.name == name for group in self.known(below))


def parting(chain: tuple[Group, ...], other: tuple[Group, ...]) -> Group | None:
    """Where two chains part: the topmost group of the other one that is not on this one."""
    mine = {group.name for group in chain}
    return next((group for group in reversed(other) if group.name not in mine), None)


THOUSAND = 1000
"""Devices are counted in thousandths, so that parts of one add up exactly."""


def size(devices: int, share: Share | None = None) -> int:
    """What counts against a quota, in thousandths of a device: of a share, its compute."""
    return devices * THOUSAND if share is None else round(share.compute * THOUSAND)


class Tally:
    """How many devices each group, and each person in each group, holds.

    A holding counts for its group and for every group above, so that comparing with a limit
    is one look-up, whatever the depth of the tree.

    Attributes:
        groups: thousandths of a device by group.
        users: thousandths of a device by group and owner.
        sessions: sessions with devices by group and owner.
    """

    def __init__(self, tree: Tree, holdings: Iterable[Holding] = ()) -> None:
        self._tree = tree
        self.groups: defaultdict[str, int] = defaultdict(int)
        self.users: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.sessions: defaultdict[tuple[str, str], int] = defaultdict(int)
        for holding in holdings:
            self.count(holding)

    def copy(self) -> Tally:
        made = Tally(self._tree)
        made.groups, made.users = self.groups.copy(), self.users.copy()
        made.sessions = self.sessions.copy()
        return made

    def add(self, group: str, owner: str, thousandths: int, sessions: int = 0) -> None:
        """Count in, or out with negative numbers."""
        for each in self._tree.known(group):
            key = (each.name, owner)
            self.groups[each.name] += thousandths
            self.users[key] += thousandths
            if sessions:
                self.sessions[key] += sessions

    def count(self, holding: Holding, times: int = 1) -> None:
        """Count a holding in, or out with ``times`` -1."""
        if holding.devices:
            weight = size(len(holding.devices), holding.share)
            sessions = times if holding.kind is Kind.SESSION else 0
            self.add(holding.group, holding.owner, times * weight, sessions)

    def of_group(self, group: str) -> float:
        """Devices, a whole number unless parts of devices are among them."""
        return _devices(self.groups[group])

    def of_user(self, group: str, owner: str) -> float:
        return _devices(self.users[group, owner])


def _devices(thousandths: int) -> float:
    whole, rest = divmod(thousandths, THOUSAND)
    return thousandths / THOUSAND if rest else whole


class Rule(StrEnum):
    """Which rule of admission refused a request."""

    UNKNOWN_GROUP = "unknown_group"
    DEVICES = "devices"
    """Not a whole number, or less than 0."""
    SECONDS = "seconds"
    """Not more than 0."""
    SECONDS_MAXIMUM = "seconds_maximum"
    GROUP_MAXIMUM = "group_maximum"
    USER_MAXIMUM = "user_maximum"
    UNKNOWN_MODEL = "unknown_model"
    FORBIDDEN_MODEL = "forbidden_model"
    """Its groups may not use it."""
    NEEDLESS_MODEL = "needless_model"
    """A model, and no device."""
    NODE_MAXIMUM = "node_maximum"
    """No node has as many devices."""
    BUDGET = "budget"
    """More than the whole budget of a period."""
    PROMISED = "promised"
    """More than is left beside what others are guaranteed, or do not lend."""
    SESSIONS = "no_sessions"
    """A session with devices, and none are allowed."""


MALFORMED = frozenset(
    {Rule.UNKNOWN_GROUP, Rule.DEVICES, Rule.SECONDS, Rule.UNKNOWN_MODEL, Rule.NEEDLESS_MODEL}
)
"""Rules about what makes sense at all; the others are about how much is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request can never run, and what would be accepted instead; both are sentences.

    Attributes:
        group: whose limit it is, or what the rule is about; empty where it is about no group.
    """

    rule: Rule
    message: str
    accepted: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one request in a group may ask for: the smallest of each on the chain."""

    max_devices: int
    max_devices_per_user: int
    max_seconds: float


def may_hold(group: Group) -> int:
    """Devices that all members together hold at most: the maximum, or what the group is
    guaranteed and may borrow (Kueue's nominal quota and borrowing limit)."""
    if group.borrowing is None:
        return group.max_devices
    return min(group.max_devices, group.guaranteed + group.borrowing)


def limits(tree: Tree, group: str) -> Limits | None:
    """What the whole chain leaves of a group's own limits; None where the chain is broken."""
    chain = tree.chain(group)
    if not chain:
        return None
    return Limits(
        max_devices=min(map(may_hold, chain)),
        max_devices_per_user=min(each.max_devices_per_user for each in chain),
        max_seconds=min(each.max_seconds for each in chain),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The most devices that one request of a group could ever have, were nothing else held.

    Attributes:
        lent: of what may be asked back: all but what others do not lend.
        kept: of what may not, as a session: it leaves others all that they are guaranteed.
    """

    lent: float
    kept: float

    def of(self, *, preemptible: bool) -> float:
        return self.lent if preemptible else self.kept


EVERYTHING = Reach(lent=inf, kept=inf)


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
    reach: Reach = EVERYTHING,
    share: Share | None = None,
) -> Refusal | None:
    """Why a request can never run as the groups and the pool are, or None if it can.

    It compares with limits and sizes, not with what is held or broken now: whoever has to
    wait is not refused. A device that does not work counts as one that may be repaired.
    The first rule that is broken answers, and what is accepted passes all of them:

    1. the group and every group above exist
    2. devices are a whole number, 0 or more
    3. the time limit is more than 0, and no longer than any group of the chain allows
    4. a session has devices only where every group of the chain allows a member such sessions
    5. devices are within what every group of the chain may hold, then within its maximum per
       person
    6. the pool has the model, and one node has as many devices that the group may use
    7. devices are within what the group could have beside what others are promised
    8. until its time limit it uses no more than the whole budget of any group of the chain;
       whoever has to wait for the next period is not refused

    A share counts as one device, but for a budget, which it uses in proportion.
    """
    tree = Tree(groups)
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
    allowed = (min(may_hold(each), each.max_devices_per_user) for each in chain)
    accepted = _from_zero_to(int(min(in_node, most, _affordable(chain, seconds), *allowed)))
    refusal = (
        no_sessions
        or _above_maximum(chain, devices)
        or _above_node(pool, devices, in_node, model, group if usable is not None else "")
        or _promised(group, devices, most, preemptible=preemptible)
    )
    by_budget = _budget(chain, _devices(size(devices, share)), seconds)
    if refusal is None or refusal.accepted:
        return refusal or by_budget
    could_be_lent = kind is Kind.JOB and devices <= reach.lent and by_budget is None
    if refusal.rule is Rule.PROMISED and could_be_lent:
        accepted = f"{accepted[:-1]}, or for a job that may be preempted."
    message = f"{refusal.message}; you asked for {number(devices)}."
    return replace(refusal, message=message, accepted=accepted)


def _unknown_group(tree: Tree, name: str) -> Refusal:
    known = [each for each in tree.names if tree.chain(each)]
    if tree.known(name):
        message = f"A group above {name} is missing, so {name} may not use anything."
    else:
        message = f"There is no group {name}."
    return Refusal(
        rule=Rule.UNKNOWN_GROUP,
        group=name,
        message=message,
        accepted=f"Groups: {', '.join(known)}." if known else "There are no groups yet.",
    )


def _shape(chain: tuple[Group, ...], devices: float, seconds: float, most: float) -> Refusal | None:
    """Rules 2 and 3. Comparisons are written so that a NaN fails them."""
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 0:
        allowed = (min(may_hold(group), group.max_devices_per_user) for group in chain)
        return Refusal(
            rule=Rule.DEVICES,
            message="The number of devices must be a whole number, 0 or more; "
            f"you asked for {number(devices)}.",
            accepted=_from_zero_to(int(min(most, *allowed))),
        )
    shortest = min(chain, key=lambda group: group.max_seconds)
    at_most = min(devices, *map(may_hold, chain))
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
    """Rule 4."""
    name = next((group.name for group in chain if group.max_sessions == 0), None)
    if kind is not Kind.SESSION or name is None:
        return None
    return _too_many(Rule.SESSIONS, name, f"{name} allows no sessions with devices")


def _above_maximum(chain: tuple[Group, ...], devices: int) -> Refusal | None:
    """Rule 5."""
    by_group = min(chain, key=may_hold)
    by_user = min(chain, key=lambda group: group.max_devices_per_user)
    if devices > may_hold(by_group):
        why = ""
        if may_hold(by_group) < by_group.max_devices:
            why = f": {by_group.guaranteed} guaranteed, and {by_group.borrowing} borrowed"
        most = plural(may_hold(by_group), "device")
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
    """Rule 6. ``group``: where it may not use all models."""
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


def _promised(group: str, devices: int, most: float, *, preemptible: bool) -> Refusal | None:
    """Rule 7."""
    if devices <= most:
        return None
    beside, lasting = "do not lend of theirs", ""
    if not preemptible:
        beside, lasting = "are guaranteed", " that it never has to give back"
    have = f"at most {plural(int(most), 'device')}" if most else "no device"
    message = f"Beside what other groups {beside}, {group} can have {have}{lasting}"
    return _too_many(Rule.PROMISED, group, message)


def _too_many(rule: Rule, group: str, message: str) -> Refusal:
    """Of devices; ``admit`` ends the sentence, and says how many are accepted."""
    return Refusal(rule=rule, group=group, message=message, accepted="")


def _budget(chain: tuple[Group, ...], devices: float, seconds: float) -> Refusal | None:
    """Rule 8."""
    having = [(group.name, group.budget) for group in chain if group.budget is not None]
    if not having or devices <= _affordable(chain, seconds):
        return None
    name, budget = min(having, key=lambda each: each[1].device_seconds)
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


def _affordable(chain: tuple[Group, ...], each: float) -> float:
    """How often the smallest budget of the chain pays for so many device-seconds."""
    whole = (group.budget.device_seconds for group in chain if group.budget is not None)
    return min(whole, default=inf) / each


def _rounded(seconds: float) -> float:
    """Down to whole minutes, or seconds."""
    return seconds // 60 * 60 or seconds // 1


def _from_zero_to(most: int) -> str:
    return f"Ask for 0 to {most}." if most > 0 else "Ask for 0 (CPU only)."
