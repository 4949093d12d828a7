"""Suggestions: try changes of a queued request on a copy of the state.

The queue is not dispatched again for every change. Only a few of the requests ahead have an effect
(the head, and the first under each limit), and the last plan tells which: serving those brings a
dispatch to the place of any request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from itertools import chain, islice, zip_longest
from math import inf

from ..cycle.decision import decide
from ..cycle.dispatch import Dispatch, DispatchHold
from ..cycle.reclaim_step import ReclaimStep
from ..cycle.start_estimates import Effort
from ..model.plan import Estimate, Reason, Wait
from ..model.snapshot import PendingRequest, PriorityClass, Snapshot, without_back_off
from ..preemption.pending_reclaims import PendingReclaims
from ..queue.cycle_state import CycleState
from ..queue.order import fair_share_of
from ..queue.queues import Queues
from ..quota.headroom import group_cap, member_cap
from ..quota.tree import THOUSAND, GroupTree, limits, size

LIMITS = frozenset({Reason.GROUP_MAXIMUM, Reason.BORROWING, Reason.USER_MAXIMUM})
STAND_ALONE = frozenset(
    {
        Reason.ABOVE_MAXIMUM,
        Reason.POOL_TOO_SMALL,
        Reason.DRAINING,
        Reason.ENGINE,
        Reason.BUDGET,
        Reason.SESSIONS,
        Reason.BACK_OFF,
        Reason.DEPENDENCY,
    }
)
"""Requests with one of these reasons neither block nor wait behind others."""
OUTSIDE_QUEUE = frozenset({Reason.BACK_OFF, Reason.DEPENDENCY})
"""Reasons of requests that are not in the queue order."""
_NO_TRACE = STAND_ALONE | {Reason.BEHIND_OTHERS}
MINUTE = 60.0
MIN_MINUTES = 5
"""Shorter time limits are not suggested."""
OTHER_GROUPS = 2
"""Number of the owner's other groups that are tried."""
SHORTER_PARTS = (2, 4)
"""Divisors of the time limit that are tried, if no shorter one would start now."""
_READ = 1
"""Effort per allocation and request to decide a snapshot again."""


class SuggestedChange(StrEnum):
    """Kind of change in the request."""

    FEWER_DEVICES = "fewer_devices"
    ANY_MODEL = "any_model"
    SHORTER_LIMIT = "shorter_limit"
    OTHER_GROUP = "other_group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A change with which the request would start now or sooner, as a trial has shown.

    Attributes:
        devices: new number of devices; None: unchanged. ``seconds`` and ``group`` likewise.
        expected: when it would start; None: now.
    """

    change: SuggestedChange
    devices: int | None = None
    seconds: float | None = None
    group: str | None = None
    expected: Estimate | None = None


class QueueReplay:
    """A dispatch that is replayed up to a place in the queue of the last plan.

    Attributes:
        dispatch: the dispatch at the current place.
        known: queued requests of the snapshot, by id.
    """

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.known: Mapping[str, PendingRequest] = {each.id: each for each in snapshot.pending}
        snapshot = without_back_off(snapshot, now)
        state = CycleState(snapshot, now)
        reclaim = ReclaimStep(
            allocations=lambda: snapshot.allocations,
            fair_share=cache(lambda: fair_share_of(snapshot, state)),
            queues=cache(lambda: Queues(state.tree, snapshot.pending, learned=state.learned_order)),
        )
        self.dispatch = Dispatch(state, PendingReclaims(reclaim))
        self._served: set[tuple[Reason, str, str]] = set()

    def copy(self) -> QueueReplay:
        clone = copy(self)
        clone.dispatch, clone._served = self.dispatch.copy(), self._served.copy()
        return clone

    def requests(self, waits: Iterable[Wait]) -> Iterator[PendingRequest]:
        """Return the requests of these waits."""
        return filter(None, (self.known.get(wait.request_id) for wait in waits))

    def past(self, waits: Iterable[Wait]) -> QueueReplay:
        """Replay the dispatch past these requests."""
        for wait in waits:
            if wait.reason in _NO_TRACE:
                continue
            request = self.known.get(wait.request_id)
            if request is None:
                continue
            if wait.reason in LIMITS:
                owner = request.owner if wait.reason is Reason.USER_MAXIMUM else ""
                key = (wait.reason, wait.detail, owner)
                if key in self._served:
                    continue
                self._served.add(key)
            elif wait.reason is Reason.GUARANTEE:
                key = (wait.reason, "", "")
                if self.dispatch.backfill is not None and key in self._served:
                    continue
                self._served.add(key)
            elif self.dispatch.backfill is not None and wait.reason is not Reason.RECLAIMING:
                continue
            self.dispatch.serve(request)
        if self.dispatch.backfill is not None:
            self.dispatch.backfill.reserve(self.dispatch.limit_backfill)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfQuery:
    """The request for which changes are tried.

    Attributes:
        wait: its wait in the plan.
        groups: other groups of its owner.
        effort: the effort left for deciding copies of the snapshot.
    """

    request: PendingRequest
    wait: Wait
    snapshot: Snapshot
    now: float
    groups: Sequence[str]
    effort: Effort

    def estimated(self, suggestion: Suggestion) -> Suggestion | None:
        """Return the suggestion with its expected start; None if that is not found."""
        pending = self.snapshot.pending
        self.effort.spend(_READ * (len(pending) + len(self.snapshot.allocations)))
        if self.effort.left <= 0:
            return None
        trial = changed(self.request, suggestion)
        with_trial = (trial if each is self.request else each for each in pending)
        snapshot = replace(self.snapshot, pending=tuple(with_trial))
        plan = decide(snapshot, self.now, until=trial.id, effort=self.effort)
        if any(start.request_id == trial.id for start in plan.starts):
            return suggestion
        after = next((each.estimate for each in plan.waits if each.request_id == trial.id), None)
        return None if after is None else replace(suggestion, expected=after)


def suggestions(
    query: WhatIfQuery, replay: QueueReplay, ahead: Sequence[Wait], behind: Iterable[Wait]
) -> Iterator[Suggestion]:
    """Yield the changes with which a request would start now.

    1. fewer devices
    2. devices of any model
    3. a time limit that ends before the head starts, or before the next reservation
    4. another group

    A change is tried at the place of the request (``replay``) if it keeps that, otherwise behind
    all others. If requests that wait because of this one could then be ahead of it, the queue is
    decided again.
    """
    request = query.request
    if not request.devices or query.wait.reason in OUTSIDE_QUEUE:
        return
    end = _BehindQueue(replay, behind)
    keeps_place = not _may_be_further_back(request, replay, ahead)
    alone = query.wait.reason in _NO_TRACE
    dispatch = replay.dispatch if keeps_place or not alone else end.dispatch

    def would_start(suggestion: Suggestion, dispatch: Dispatch, *, certain: bool) -> bool:
        return starts(changed(request, suggestion), dispatch) and (
            certain or query.estimated(suggestion) is suggestion
        )

    found: set[SuggestedChange] = set()
    for suggestion in chain(_fewer(request), _any_model(request), _shorter(request, dispatch)):
        if suggestion.change not in found and would_start(
            suggestion, dispatch, certain=keeps_place or alone
        ):
            found.add(suggestion.change)
            yield suggestion
    for suggestion in _other_groups(query):
        if would_start(suggestion, end.dispatch, certain=alone):
            yield suggestion


def _may_be_further_back(
    request: PendingRequest, replay: QueueReplay, ahead: Sequence[Wait]
) -> bool:
    """Return whether a smaller or shorter form of a request could lose its place in the queue.

    It could if it has a deadline, or if a limit would hold it once all requests ahead were served:
    then it has the position of the request before it, uncharged (``QueueOrder``).
    """
    if request.deadline is not None:
        return True
    state = replay.dispatch.state
    for group in state.tree.chain(request.group):
        inside = state.tree.subtree(group.name)
        most = state.tally.groups[group.name]
        member_held = state.tally.users[group.name, request.owner]
        for each in chain((request,), replay.requests(ahead)):
            if each.group in inside:
                weight = size(each.devices, each.share)
                most += weight
                member_held += weight if each.owner == request.owner else 0
                if most > group_cap(group) or member_held > member_cap(group):
                    return True
    return False


def sooner(query: WhatIfQuery) -> Iterator[Suggestion]:
    """Yield for every kind of change the one with the earliest start, among equals the smallest.

    Changes are tried while effort is left: first one of every kind, then the second of every kind.
    """
    request, before = query.request, query.wait.estimate
    if before is None:
        return
    kinds = (
        reversed(tuple(_fewer(request))),
        _any_model(request),
        _parts(request),
        _other_groups(query),
    )
    best: dict[SuggestedChange, Suggestion] = {}
    for suggestion in filter(None, chain.from_iterable(zip_longest(*kinds))):
        if query.effort.left <= 0:
            break
        tried = query.estimated(suggestion)
        if tried is not None and _is_sooner(tried.expected, before):
            known = best.setdefault(tried.change, tried)
            best[tried.change] = min(known, tried, key=_soonest)
    yield from (best[change] for change in SuggestedChange if change in best)


def _is_sooner(after: Estimate | None, before: Estimate) -> bool:
    """Return whether a start is sooner by a minute, and no later in the worst case; None: now."""
    return after is None or (after.at + MINUTE <= before.at and after.latest <= before.latest)


def _soonest(suggestion: Suggestion) -> tuple[float, float, int, float]:
    """Sort key within one kind: the earliest start, then the larger request."""
    when = suggestion.expected
    at, latest = (-inf, -inf) if when is None else (when.at, when.latest)
    return at, latest, -(suggestion.devices or 0), -(suggestion.seconds or 0.0)


def changed(request: PendingRequest, suggestion: Suggestion) -> PendingRequest:
    """Return the request with a suggestion applied."""
    seconds = request.seconds if suggestion.seconds is None else suggestion.seconds
    return replace(
        request,
        devices=request.devices if suggestion.devices is None else suggestion.devices,
        model=None if suggestion.change is SuggestedChange.ANY_MODEL else request.model,
        seconds=seconds,
        expected=None if request.expected is None else min(request.expected, seconds),
        group=request.group if suggestion.group is None else suggestion.group,
    )


class _BehindQueue:
    """The dispatch behind all other requests, computed on first use."""

    def __init__(self, replay: QueueReplay, behind: Iterable[Wait]) -> None:
        self._replay, self._behind = replay, behind

    @cached_property
    def dispatch(self) -> Dispatch:
        return self._replay.copy().past(self._behind).dispatch


def starts(request: PendingRequest, dispatch: Dispatch) -> bool:
    """Return whether a request would start now at this place; the dispatch does not change."""
    return not isinstance(dispatch.copy().serve(request), DispatchHold)


def _fewer(request: PendingRequest) -> Iterator[Suggestion]:
    """Yield a few smaller sizes, the largest first; none for gangs, which have a minimum."""
    if request.gang or request.share is not None:
        return
    sizes = sorted({request.devices - 1, request.devices // 2, 1}, reverse=True)
    for devices in sizes:
        if 0 < devices < request.devices:
            yield Suggestion(change=SuggestedChange.FEWER_DEVICES, devices=devices)


def _any_model(request: PendingRequest) -> Iterator[Suggestion]:
    if request.model is not None:
        yield Suggestion(change=SuggestedChange.ANY_MODEL)


def _shorter(request: PendingRequest, dispatch: Dispatch) -> Iterator[Suggestion]:
    """Yield time limits that end before the shadow time or the next reservation, longest first.

    They are not shorter than the expected runtime.
    """
    head = dispatch.backfill
    ends = (
        inf if head is None or head.at is None else head.at,
        dispatch.state.next_reservation_edge(),
    )
    for end in sorted(set(ends), reverse=True):
        minutes = (end - dispatch.state.now) // MINUTE if end < inf else 0
        if _least_minutes(request) <= minutes < request.seconds / MINUTE:
            yield Suggestion(change=SuggestedChange.SHORTER_LIMIT, seconds=minutes * MINUTE)


def _parts(request: PendingRequest) -> Iterator[Suggestion]:
    """Yield fractions of its time limit in whole minutes, longest first.

    They are not shorter than the expected runtime.
    """
    for part in SHORTER_PARTS:
        minutes = request.seconds // MINUTE // part
        if minutes >= _least_minutes(request):
            yield Suggestion(change=SuggestedChange.SHORTER_LIMIT, seconds=minutes * MINUTE)


def _least_minutes(request: PendingRequest) -> float:
    return max(MIN_MINUTES, (request.expected or 0.0) / MINUTE)


def _other_groups(query: WhatIfQuery) -> Iterator[Suggestion]:
    """Yield a few other groups of its owner that would admit it; none for urgent requests."""
    request, tree = query.request, GroupTree(query.snapshot.groups)
    if request.priority is PriorityClass.URGENT:
        return
    needs = size(request.devices, request.share) / THOUSAND * request.seconds
    for group in islice(query.groups, OTHER_GROUPS):
        other = limits(tree, group)
        if group == request.group or other is None or other.max_seconds < request.seconds:
            continue
        budgets = (each.budget.device_seconds for each in tree.chain(group) if each.budget)
        if needs <= min(budgets, default=inf):
            yield Suggestion(change=SuggestedChange.OTHER_GROUP, group=group)
