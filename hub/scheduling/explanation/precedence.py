"""By which rule of the order somebody is ahead of a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..model.snapshot import Group, PendingRequest
from ..queue.cycle_state import CycleState
from ..queue.queues import entry, rank
from ..quota.tree import THOUSAND, parting, size


class Precedence(StrEnum):
    """The rules of the order (design: section 6), by what they mean to whoever is behind."""

    PROMISED = "promised"
    """Devices were asked back for it, and somebody was stopped for that."""
    MOVED = "moved"
    """It was stopped within its guarantee to make room."""
    RESERVATION = "reservation"
    """A reservation of its group is due."""
    PRIORITY = "priority"
    GUARANTEE = "guarantee"
    """Its group stays within its guarantee with it."""
    LESS_USE = "less_use"
    """Its group, or its owner, has used less for its weight."""
    SHORTER = "shorter"
    """Of the same owner: less of it is left, with ageing."""
    DEADLINE = "deadline"
    """Of the same group: its deadline is in danger; of the same owner: or closer."""
    OLDER = "older"
    """Of the same owner, and alike: it was submitted earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsAhead:
    """How many are ahead by one rule.

    Attributes:
        group: the one that is served before one's own; empty where it is not about groups.
    """

    rule: Precedence
    count: int
    group: str = ""


def precedence(
    request: PendingRequest,
    ahead: Iterable[PendingRequest],
    books: CycleState,
    promised: Collection[str] = (),
) -> tuple[RequestsAhead, ...]:
    """By which rules these are ahead of a request, in the order of the rules.

    ``promised``: for whom others were stopped.
    """
    due = {name for each in books.due() for name in books.tree.below(each.group)}
    chain, own_rank = books.tree.chain(request.group), rank(request.priority)
    beside: dict[str, Group | None] = {}
    counts: Counter[tuple[Precedence, str]] = Counter()
    for other in ahead:
        if other.group not in beside:
            beside[other.group] = parting(chain, books.tree.chain(other.group))
        group = beside[other.group]
        if other.id in promised:
            counts[Precedence.PROMISED, ""] += 1
        elif other.moved_for:
            counts[Precedence.MOVED, ""] += 1
        elif other.group in due and request.group not in due:
            counts[Precedence.RESERVATION, other.group] += 1
        elif rank(other.priority) < own_rank:
            counts[Precedence.PRIORITY, ""] += 1
        elif group is not None:
            rule = Precedence.GUARANTEE if _within(other, group, books) else Precedence.LESS_USE
            counts[rule, group.name] += 1
        elif other.owner != request.owner or other.group != request.group:
            hurries = _in_danger(other, books.now) and not _in_danger(request, books.now)
            counts[Precedence.DEADLINE if hurries else Precedence.LESS_USE, ""] += 1
        else:
            counts[_of_one_owner(other, request, books.now), ""] += 1
    rules = tuple(Precedence)
    order = sorted(counts, key=lambda each: (rules.index(each[0]), -counts[each], each[1]))
    return tuple(
        RequestsAhead(rule=rule, count=counts[rule, name], group=name) for rule, name in order
    )


def _within(other: PendingRequest, group: Group, books: CycleState) -> bool:
    held = books.tally.groups[group.name] + size(other.devices, other.share)
    return held <= books.guaranteed.get(group.name, 0) * THOUSAND


def _in_danger(request: PendingRequest, now: float) -> bool:
    _, danger, _, _ = entry(request)[0]
    return danger <= now


def _of_one_owner(other: PendingRequest, request: PendingRequest, now: float) -> Precedence:
    if _in_danger(other, now) and not _in_danger(request, now):
        return Precedence.DEADLINE
    first, second = entry(other)[0], entry(request)[0]
    rules = (Precedence.SHORTER, Precedence.DEADLINE, Precedence.OLDER, Precedence.OLDER)
    parts = zip(first, second, rules, strict=True)
    return next((rule for one, two, rule in parts if one != two), Precedence.OLDER)
