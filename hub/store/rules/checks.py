"""Checks of groups, marks and terms before they are stored, and errors for missing records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf, isfinite

from ...errors import Conflict, InvalidInput, NotFound
from ...records.calendar import Term
from ...scheduling.model.snapshot import Device, Group, Mark, MarkKind
from ...scheduling.model.text import plural


def check_group(group: Group, known: Mapping[str, Group]) -> None:
    """Check the limits of a group and its position in the tree.

    Raises:
        InvalidInput: a limit is out of range, or the parent is missing or forms a cycle.
    """
    if min(_limits(group)) < 0:
        raise InvalidInput(
            f"A limit of the group {group.name} is negative.", accepted="Limits are 0 or more."
        )
    if not (isfinite(group.weight) and group.weight > 0):
        raise InvalidInput(
            f"The weight {group.weight:g} of the group {group.name} is out of range.",
            accepted="A number above 0; the default is 1.",
            field="weight",
        )
    if group.budget is not None and not 0 <= group.budget.device_seconds < inf:
        raise InvalidInput(
            f"The budget of the group {group.name} is out of range.",
            accepted="A number of device-hours, 0 or more.",
            field="budget",
        )
    ancestor, visited = group.parent, {group.name}
    while ancestor is not None:
        if ancestor in visited:
            raise InvalidInput(
                f"{group.parent} cannot be the parent of {group.name}: the groups would form a "
                "cycle.",
                accepted="A group that is not below it.",
            )
        if ancestor not in known:
            raise InvalidInput(
                f"The parent {ancestor} of the group {group.name} does not exist.",
                accepted=f"Groups: {names(known)}.",
            )
        visited.add(ancestor)
        ancestor = known[ancestor].parent


def _limits(group: Group) -> tuple[int, ...]:
    limits = (group.max_devices, group.max_devices_per_user, group.max_seconds, group.idle_seconds)
    optional = (group.borrowing, group.lending, group.max_sessions)
    return (*limits, group.guaranteed, *(limit for limit in optional if limit is not None))


def no_group(name: str, known: Iterable[str]) -> NotFound:
    return NotFound(f"There is no group {name}.", accepted=f"Groups: {names(known)}.")


def check_removable(name: str, known: Mapping[str, Group], live: int) -> None:
    """Check that a group can be removed.

    Args:
        live: the number of its requests that have not ended.

    Raises:
        Conflict: the group has subgroups or live requests.
    """
    children = sorted(group.name for group in known.values() if group.parent == name)
    if children:
        raise Conflict(
            f"The group {name} has {plural(len(children), 'subgroup')}: {', '.join(children)}.",
            accepted="Remove the subgroups first, or move them to another parent.",
        )
    if live:
        raise Conflict(
            f"The group {name} has {plural(live, 'request')} that "
            f"{'is' if live == 1 else 'are'} queued or running.",
            accepted="Wait until they have ended, or cancel them.",
        )


_OF_DEVICES = frozenset({MarkKind.QUARANTINE, MarkKind.VALIDATION})


def check_mark(mark: Mark, devices: Iterable[Device], nodes: Collection[str]) -> None:
    """Check the target of a mark.

    Raises:
        NotFound: there is no such device or node, or the mark is for devices only.
    """
    device_ids = {device.id for device in devices}
    if mark.target in device_ids:
        return
    if mark.target in nodes and mark.kind not in _OF_DEVICES:
        return
    if mark.target in nodes:
        raise NotFound(
            f"{mark.target} is a node.",
            accepted="Only single devices can be quarantined; a node can be drained.",
        )
    raise NotFound(
        f"There is no device or node {mark.target[:80]}.",
        accepted=f"Nodes: {names(nodes)}. `carrel pool` lists the devices.",
    )


def check_term(term: Term, known: Iterable[Term]) -> None:
    """Check the days of a term.

    Raises:
        InvalidInput: the term ends before it begins, or overlaps another.
    """
    if term.last < term.first:
        raise InvalidInput(
            f"The term {term.name} ends before it begins.",
            accepted="A last day that is not before the first day.",
            field="last",
        )
    for other in known:
        if other.name != term.name and term.first <= other.last and other.first <= term.last:
            raise InvalidInput(
                f"The term {term.name} overlaps {other.name}, which is from {other.first} "
                f"to {other.last}.",
                accepted="Terms cannot overlap.",
                field="first",
            )


def no_device(name: str) -> NotFound:
    return NotFound(f"There is no device {name}.")


def no_node(name: str) -> NotFound:
    return NotFound(f"There is no node {name}.")


def node_in_use(name: str) -> Conflict:
    return Conflict(
        f"Sessions or jobs run on {name}.",
        accepted=f"Drain it first: carrel node drain {name} --until 2h",
    )


def no_request(name: str) -> NotFound:
    return NotFound(f"There is no request {name}.")


def no_lease(name: str) -> NotFound:
    return NotFound(f"There is no lease {name}.")


def names(known: Iterable[str]) -> str:
    """Return the sorted names as text."""
    return ", ".join(sorted(known)) or "none yet"
