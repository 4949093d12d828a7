"""Explain why a request waits, which requests are ahead of it, and what would start it sooner.

It returns values; ``hub.messages`` renders the sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from ..cycle.start_estimates import FIRST_PAGE, Effort, estimates
from ..model.plan import Reason, Wait
from ..model.snapshot import BudgetBalance, Group, PendingRequest, ReservedSpan, Snapshot
from ..queue.cycle_state import CycleState
from ..queue.queues import entry, rank
from ..quota.headroom import group_cap, limit_reached, member_cap
from ..quota.tree import THOUSAND, diverging_group, size
from .what_if import (
    LIMITS,
    OUTSIDE_QUEUE,
    STAND_ALONE,
    QueueReplay,
    Suggestion,
    WhatIfQuery,
    sooner,
    suggestions,
)


class Precedence(StrEnum):
    """The rule of the queue order by which another request is ahead."""

    PREEMPTOR = "promised"
    """It is a preemptor: other work was stopped for it."""
    RELOCATED = "moved"
    """It was relocated."""
    RESERVATION = "reservation"
    """A reservation of its group is due."""
    PRIORITY = "priority"
    EXPEDITED = "expedited"
    """Its node or device failed, and it is queued again."""
    GUARANTEE = "guarantee"
    """Its group stays within its guaranteed quota with it."""
    LESS_USE = "less_use"
    """Its group, or its owner, has used less in proportion to its weight."""
    SHORTER = "shorter"
    """Of the same owner: it has less work left, less a credit for its age."""
    LEARNED = "learned"
    """Of the same owner: only the discount of a learned order makes its work the lesser."""
    DEADLINE = "deadline"
    """Of the same group: its deadline is in danger. Of the same owner: or its deadline is
    earlier."""
    OLDER = "older"
    """Of the same owner, and otherwise equal: it was submitted earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsAhead:
    """Number of requests that are ahead by one rule.

    Attributes:
        group: the group that is served first; empty if the rule is not about groups.
    """

    rule: Precedence
    count: int
    group: str = ""


def precedence(
    request: PendingRequest,
    ahead: Iterable[PendingRequest],
    state: CycleState,
    preemptors: Collection[str] = (),
) -> tuple[RequestsAhead, ...]:
    """Count by rule the requests that are ahead of another, in the order of the rules.

    ``preemptors``: request ids.
    """
    due = {name for each in state.due() for name in state.tree.subtree(each.group)}
    chain, own_rank = state.tree.chain(request.group), rank(request.priority)
    beside: dict[str, Group | None] = {}
    counts: Counter[tuple[Precedence, str]] = Counter()
    for other in ahead:
        if other.group not in beside:
            beside[other.group] = diverging_group(chain, state.tree.chain(other.group))
        group = beside[other.group]
        if other.id in preemptors:
            counts[Precedence.PREEMPTOR, ""] += 1
        elif other.moved_for:
            counts[Precedence.RELOCATED, ""] += 1
        elif other.group in due and request.group not in due:
            counts[Precedence.RESERVATION, other.group] += 1
        elif rank(other.priority) < own_rank:
            counts[Precedence.PRIORITY, ""] += 1
        elif other.expedited and other.priority is request.priority:
            counts[Precedence.EXPEDITED, ""] += 1
        elif group is not None:
            rule = Precedence.GUARANTEE if _within(other, group, state) else Precedence.LESS_USE
            counts[rule, group.name] += 1
        elif other.owner != request.owner or other.group != request.group:
            urgent = _in_danger(other, state) and not _in_danger(request, state)
            counts[Precedence.DEADLINE if urgent else Precedence.LESS_USE, ""] += 1
        else:
            counts[_of_one_owner(other, request, state), ""] += 1
    rules = tuple(Precedence)
    order = sorted(counts, key=lambda each: (rules.index(each[0]), -counts[each], each[1]))
    return tuple(
        RequestsAhead(rule=rule, count=counts[rule, name], group=name) for rule, name in order
    )


def _within(other: PendingRequest, group: Group, state: CycleState) -> bool:
    held = state.tally.groups[group.name] + size(other.devices, other.share)
    return held <= state.guaranteed.get(group.name, 0) * THOUSAND


def _in_danger(request: PendingRequest, state: CycleState) -> bool:
    _, danger, _, _ = entry(request, state.learned_order)[0]
    return danger <= state.now


def _of_one_owner(other: PendingRequest, request: PendingRequest, state: CycleState) -> Precedence:
    if _in_danger(other, state) and not _in_danger(request, state):
        return Precedence.DEADLINE
    first, second = (entry(each, state.learned_order)[0] for each in (other, request))
    if state.learned_order is not None and first[0] < second[0]:
        plain = [entry(each, None)[0] for each in (other, request)]
        return Precedence.SHORTER if plain[0] < plain[1] else Precedence.LEARNED
    rules = (Precedence.SHORTER, Precedence.DEADLINE, Precedence.OLDER, Precedence.OLDER)
    parts = zip(first, second, rules, strict=True)
    return next((rule for one, two, rule in parts if one != two), Precedence.OLDER)


MAX_AHEAD = 200
"""With more requests ahead of it, the start of a request is not estimated."""
ESTIMATE_EFFORT = 2600
"""Effort limit for the estimate of one request, so that a page loads quickly."""
SUGGESTION_EFFORT = 1900
"""Effort limit for suggestions, in addition to the effort that the estimate left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaState:
    """The quota that holds a request, and its current usage. Shares count in proportion.

    Attributes:
        reason: ``GROUP_MAXIMUM``, ``BORROWING``, ``USER_MAXIMUM`` or ``SESSIONS``.
        held: devices (or sessions) of the group, or of the owner if the limit is per member.
        most: the limit.
        guaranteed: guaranteed quota of the group, including that of the groups below.
    """

    reason: Reason
    group: str
    held: float
    most: float
    guaranteed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Explanation of the wait of a queued request.

    Attributes:
        wait: place, reason and expected start, as in the plan. Past the first page of the queue,
            the start is estimated here.
        free: number of devices (of its model) that are wholly free.
        schedulable: number of schedulable devices (of its model), free or not.
        quota: the quota that holds it, if any.
        budget: the balance of the budget that holds it, if any.
        reserved: the reservation that devices are withheld for, if any.
        ahead: numbers of requests by rule, in the order of the rules.
        suggestions: changes with which it would start now; if there are none, sooner.
    """

    request: PendingRequest
    wait: Wait
    free: int = 0
    schedulable: int = 0
    quota: QuotaState | None = None
    budget: BudgetBalance | None = None
    reserved: ReservedSpan | None = None
    ahead: tuple[RequestsAhead, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()


def explain(
    snapshot: Snapshot,
    request_id: str,
    now: float,
    *,
    waits: Iterable[Wait],
    groups: Sequence[str] = (),
) -> Explanation | None:
    """Explain why a request waits; None if it is not queued.

    Its start is estimated at any place in the queue, unless more than ``MAX_AHEAD`` requests are
    ahead of it or that takes more than ``ESTIMATE_EFFORT``.

    Args:
        waits: the waits of the last plan, in its order. The snapshot has its starts as allocations.
        groups: other groups of its owner, for suggestions.
    """
    replay = QueueReplay(snapshot, now)
    request = replay.known.get(request_id)
    ahead, wait, behind = _split(waits, request_id)
    if request is None or wait is None:
        return None
    effort = Effort(ESTIMATE_EFFORT)
    wait = _estimated(wait, request, ahead, replay, effort)
    effort.left += SUGGESTION_EFFORT
    query = WhatIfQuery(
        request=request, wait=wait, snapshot=snapshot, now=now, groups=groups, effort=effort
    )
    state = replay.past(ahead).dispatch.state
    found = tuple(suggestions(query, replay, ahead, behind)) or tuple(sooner(query))
    return Explanation(
        request=request,
        wait=wait,
        free=state.pool.free_count(request.model, request.nodes),
        schedulable=state.pool.total_count(request.model, request.nodes),
        quota=_quota(request, state),
        budget=_budget(wait, snapshot),
        reserved=_reserved(wait, snapshot, now),
        ahead=precedence(
            request, _competing(wait, request, ahead, replay.known), state, _preemptors(snapshot)
        ),
        suggestions=found,
    )


def _split(
    waits: Iterable[Wait], request_id: str
) -> tuple[tuple[Wait, ...], Wait | None, tuple[Wait, ...]]:
    every = tuple(waits)
    for at, wait in enumerate(every):
        if wait.request_id == request_id:
            return every[:at], wait, every[at + 1 :]
    return every, None, ()


def _estimated(
    wait: Wait, request: PendingRequest, ahead: Iterable[Wait], start: QueueReplay, effort: Effort
) -> Wait:
    """Return the wait with an estimate, also past the first page."""
    if wait.estimate is not None or not request.devices or wait.reason in OUTSIDE_QUEUE:
        return wait
    others = (start.known.get(each.request_id) for each in ahead)
    page = tuple(islice((each for each in others if each and each.devices), MAX_AHEAD + 1))
    if not FIRST_PAGE <= len(page) <= MAX_AHEAD:
        return wait
    found = estimates((*page, request), start.dispatch.state, request.id, effort)
    return wait._replace(estimate=found.get(request.id))


def _quota(request: PendingRequest, state: CycleState) -> QuotaState | None:
    limit = limit_reached(request, state.tree, state.tally, state.budgets)
    if limit is None or limit.reason is Reason.BUDGET:
        return None
    known = state.tree.ancestry(limit.group)
    if not known:
        return None
    group = known[0]
    tally = state.tally
    if limit.reason is Reason.SESSIONS:
        held: float = tally.sessions[group.name, request.owner]
        most: float = group.max_sessions or 0
    elif limit.reason is Reason.USER_MAXIMUM:
        held, most = tally.of_user(group.name, request.owner), member_cap(group) / THOUSAND
    else:
        held, most = tally.of_group(group.name), group_cap(group) / THOUSAND
    return QuotaState(
        reason=limit.reason,
        group=group.name,
        held=held,
        most=most,
        guaranteed=state.guaranteed.get(group.name, 0),
    )


def _budget(wait: Wait, snapshot: Snapshot) -> BudgetBalance | None:
    if wait.reason is not Reason.BUDGET:
        return None
    return next((each for each in snapshot.budgets if each.group == wait.detail), None)


def _reserved(wait: Wait, snapshot: Snapshot, now: float) -> ReservedSpan | None:
    """Return the reservation that devices are withheld for: of the group named, or the next one."""
    if wait.reason is not Reason.RESERVATION:
        return None
    left = [
        each for each in snapshot.reserved if each.ends_at > now and wait.detail in ("", each.group)
    ]
    return min(left, key=lambda each: (each.starts_at, each.id), default=None)


def _preemptors(snapshot: Snapshot) -> frozenset[str]:
    """Return the preemptors of queued victims."""
    return frozenset(each.preemptor for each in snapshot.pending) - {""}


def _competing(
    wait: Wait, request: PendingRequest, ahead: Sequence[Wait], known: Mapping[str, PendingRequest]
) -> list[PendingRequest]:
    """Return the requests ahead that wait for the same limit, or for devices."""
    if wait.reason in STAND_ALONE:
        return []
    found = []
    for each in ahead:
        if each.reason in STAND_ALONE:
            continue
        other = known.get(each.request_id)
        if other is None or not other.devices:
            continue
        if each.reason in LIMITS:
            same = (each.reason, each.detail) == (wait.reason, wait.detail)
            if not same or (each.reason is Reason.USER_MAXIMUM and other.owner != request.owner):
                continue
        found.append(other)
    return found
