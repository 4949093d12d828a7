"""Preview a quota change: its effects on queued and running requests, computed on a copy.

A lowered quota stops no running work. It applies to requests that start afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..cycle.decision import decide
from ..model.plan import Plan, Reason
from ..model.snapshot import Group, Snapshot
from ..model.text import plural, span
from ..placement.gangs import least
from ..quota.tree import THOUSAND, GroupTree, Tally, group_max, guarantees, size
from .admission_rules import reachable

UNAFFECTED = "No queued or running request is affected."
UNCHANGED = "Nothing changes."
NEW = "A new group: it has no queued or running requests yet."
NO_EFFECT = frozenset({UNAFFECTED, UNCHANGED, NEW})


def consequences(after: Group, snapshot: Snapshot, now: float) -> tuple[str, ...]:
    """Return the effects of saving this group, as sentences for the administrator.

    1. allocations above a limit
    2. queued requests that could never start
    3. queued requests that would start at once
    4. limits of groups above and below that apply as well
    5. time limits, which apply to new requests only
    6. guaranteed quotas that cannot all be kept
    """
    before = next((group for group in snapshot.groups if group.name == after.name), None)
    if before == after:
        return (UNCHANGED,)
    others = tuple(group for group in snapshot.groups if group.name != after.name)
    changed = replace(snapshot, groups=(*others, after))
    effects = (
        *_held_above(after, changed),
        *_pending(snapshot, changed, now),
        *_bound_by_others(after, changed),
        *_times(before, after),
        *guarantee_warnings(after, changed),
    )
    if effects:
        return effects
    return (NEW if before is None else UNAFFECTED,)


def _held_above(after: Group, changed: Snapshot) -> Iterator[str]:
    tree = GroupTree(changed.groups)
    tally = Tally(tree, changed.allocations)
    for group in tree.ancestry(after.name):
        held = tally.of_group(group.name)
        if held > group.max_devices:
            new = "the new" if group is after else "its"
            yield (
                f"{group.name} holds {plural(held, 'device')}, above {new} maximum of "
                f"{group.max_devices}: nothing is stopped, nothing new starts."
            )
    most = after.max_devices_per_user
    owners = sorted({allocation.owner for allocation in changed.allocations})
    above = [owner for owner in owners if tally.of_user(after.name, owner) > most]
    if above:
        verb = "holds" if len(above) == 1 else "hold"
        yield (
            f"{_listed(above)} {verb} more than the {plural(most, 'device')} of one member: "
            "nothing is stopped, nothing new starts for them."
        )


def _pending(snapshot: Snapshot, changed: Snapshot, now: float) -> Iterator[str]:
    plan, planned = decide(snapshot, now), decide(changed, now)
    was_stuck, stuck = _stuck(snapshot, plan), _stuck(changed, planned)
    if never := len(stuck - was_stuck):
        yield f"{plural(never, 'queued request')} could never start."
    if again := len(was_stuck - stuck):
        yield f"{plural(again, 'queued request')} that could never start could start again."
    began = {start.request_id for start in plan.starts}
    if starts := len({start.request_id for start in planned.starts} - began):
        yield f"{plural(starts, 'queued request')} would start at once."


def _stuck(snapshot: Snapshot, plan: Plan) -> set[str]:
    """Return the queued requests that could never start: by a limit, or the quota of others."""
    waits = {each.request_id: each.reason for each in plan.waits}
    most = {
        name: reachable(name, snapshot.groups, snapshot.devices)
        for name in {each.group for each in snapshot.pending if each.id in waits}
    }
    return {
        each.id
        for each in snapshot.pending
        if each.id in waits
        and (
            waits[each.id] is Reason.ABOVE_MAXIMUM
            or size(least(each).devices, each.share)
            > THOUSAND * most[each.group].of(preemptible=each.preemptible)
        )
    }


def _bound_by_others(after: Group, changed: Snapshot) -> Iterator[str]:
    tree = GroupTree(changed.groups)
    most = group_max(tree.ancestry(after.name)[0])
    above = min(tree.chain(after.name), key=group_max, default=None)
    if above is None:
        yield f"A group above {after.name} is missing: its members may hold nothing."
    elif group_max(above) < most:
        yield (
            f"{above.name}, above it, allows {plural(group_max(above), 'device')} at one time: "
            f"{after.name} never holds more."
        )
    for group in sorted(tree.children(after.name), key=lambda group: group.name):
        if group_max(group) > most:
            yield (
                f"{group.name}, below it, may hold {group_max(group)} by its own limits, "
                f"and {most} by these."
            )


def _times(before: Group | None, after: Group) -> Iterator[str]:
    if before is not None and before.max_seconds > after.max_seconds:
        yield (
            f"New requests may ask for {span(after.max_seconds)} at most; queued and "
            "running requests keep their time limits."
        )


_NAMED = 3


def _listed(names: Iterable[str]) -> str:
    """Join names: ``ada``, ``ada and ben``, ``ada, ben, cleo and 4 more``."""
    all_names = list(names)
    shown, more = all_names[:_NAMED], len(all_names) - _NAMED
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def guarantee_warnings(after: Group, changed: Snapshot) -> Iterator[str]:
    """Yield warnings about the guaranteed quota of a group, which ``changed`` contains already.

    1. It is more than the group's max quota.
    2. The guaranteed quotas of the groups below add up to more.
    3. Those of the group and its siblings add up to more than that of the group above.
    4. Those of all groups add up to more than the pool.
    """
    if after.guaranteed > after.max_devices:
        yield (
            f"{after.name} is guaranteed {plural(after.guaranteed, 'device')} and may hold "
            f"{after.max_devices}: it can never hold all of them."
        )
    groups = {group.name: group for group in changed.groups}
    for above in filter(None, (after, groups.get(after.parent or ""))):
        below = _sum(changed, above.name)
        if below > above.guaranteed > 0 and (above is after or after.guaranteed):
            yield (
                f"The groups below {above.name} are guaranteed {plural(below, 'device')} "
                f"together, more than {above.name} itself with {above.guaranteed}: it counts as "
                f"guaranteed {below}."
            )
    own = guarantees(changed.groups)
    roots = sum(own[group.name] for group in changed.groups if group.parent is None)
    pool = len(changed.devices)
    if after.guaranteed and roots > pool:
        yield (
            f"All groups together are guaranteed {plural(roots, 'device')}; the pool has {pool}: "
            "these cannot all be met at once."
        )


def _sum(changed: Snapshot, parent: str | None) -> int:
    return sum(group.guaranteed for group in changed.groups if group.parent == parent)
