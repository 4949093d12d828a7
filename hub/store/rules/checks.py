"""Checks of groups, marks and terms before they are stored, and errors for missing records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf, isfinite

from ...errors import Conflict, InvalidInput, NotFound
from ...records.calendar import Term
from ...scheduling.model.snapshot import Device, Group, Mark, MarkKind
from ...scheduling.model.text import plural


def check_group(group: Group, known: Mapping[str, Group]) -> None:
    """Raises InvalidInput where the group does not fit into the tree."""
    if min(_limits(group)) < 0:
        raise InvalidInput(
            f"A limit of the group {group.name} is negative.", accepted="Limits are 0 or more."
        )
    if not (isfinite(group.weight) and group.weight > 0):
        raise InvalidInput(
            f"{group.weight:g} is no weight that the group {group.name} can have.",
            accepted="A weight is a number above 0; 1 is the ordinary one.",
            field="weight",
        )
    if group.budget is not None and not 0 <= group.budget.device_seconds < inf:
        raise InvalidInput(
            f"The budget of the group {group.name} is no amount.",
            accepted="A number of device-hours, 0 or more.",
            field="budget",
        )
    above, seen = group.parent, {group.name}
    while above is not None:
        if above in seen:
            raise InvalidInput(
                f"The group {group.name} cannot stand below {group.parent}: that makes a circle.",
                accepted="A parent must not be below its own child.",
            )
        if above not in known:
            raise InvalidInput(
                f"There is no group {above} to be the parent of {group.name}.",
                accepted=f"Groups: {names(known)}.",
            )
        seen.add(above)
        above = known[above].parent


def _limits(group: Group) -> tuple[int, ...]:
    whole = (group.max_devices, group.max_devices_per_user, group.max_seconds, group.idle_seconds)
    open_ended = (group.borrowing, group.lending, group.max_sessions)
    return (*whole, group.guaranteed, *(limit for limit in open_ended if limit is not None))


def no_group(name: str, known: Iterable[str]) -> NotFound:
    return NotFound(f"There is no group {name}.", accepted=f"Groups: {names(known)}.")


def check_removable(name: str, known: Mapping[str, Group], live: int) -> None:
    """Raises Conflict where something still stands on the group."""
    below = sorted(group.name for group in known.values() if group.parent == name)
    if below:
        raise Conflict(
            f"The group {name} stands above {', '.join(below)}.",
            accepted="Remove these first, or give them another group above.",
        )
    if live:
        raise Conflict(
            f"The group {name} has {plural(live, 'request')} that "
            f"{'waits or runs' if live == 1 else 'wait or run'}.",
            accepted="Wait until they have ended, or cancel them.",
        )


def check_mark(mark: Mark, devices: Iterable[Device], nodes: Collection[str]) -> None:
    """Raises NotFound where there is nothing of this name to be marked."""
    known = {device.id for device in devices}
    if mark.target in known or (mark.target in nodes and mark.kind is not MarkKind.QUARANTINE):
        return
    if mark.target in nodes:
        raise NotFound(
            f"{mark.target} is a node.",
            accepted="Only single devices are put into quarantine; a node can be drained.",
        )
    raise NotFound(
        f"There is no device or node {mark.target[:80]}.",
        accepted=f"Nodes: {names(nodes)}. `carrel pool` lists the devices.",
    )


def check_term(term: Term, known: Iterable[Term]) -> None:
    """Raises InvalidInput for one that ends before it begins, or that overlaps another."""
    if term.last < term.first:
        raise InvalidInput(
            f"The term {term.name} ends before it begins.",
            accepted="First the first day, then the last one.",
            field="last",
        )
    for other in known:
        if other.name != term.name and term.first <= other.last and other.first <= term.last:
            raise InvalidInput(
                f"The term {term.name} overlaps {other.name}, which is from {other.first} "
                f"to {other.last}.",
                accepted="Terms follow each other.",
                field="first",
            )


def no_device(name: str) -> NotFound:
    return NotFound(f"There is no device {name}.")


def no_request(name: str) -> NotFound:
    return NotFound(f"There is no request {name}.")


def no_lease(name: str) -> NotFound:
    return NotFound(f"There is no lease {name}.")


def names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none yet"
