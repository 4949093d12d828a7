"""What would start sooner: one waiting request in another form, tried on a copy of the books.

The queue is not walked anew for each form. Of all those ahead only a few leave a trace on the
way (the head that lacks devices, and the first under each limit), and the last plan says which:
serving those brings a walk to the place of any request in the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from itertools import chain, islice
from math import inf

from .asking import Asking
from .books import Books
from .cycle import debts_of, decide
from .model import Snapshot, Waiting
from .plan import Estimate, Reason, Wait
from .quota import limits
from .walk import Held, Walk

LIMITS = frozenset({Reason.GROUP_MAXIMUM, Reason.BORROWING, Reason.USER_MAXIMUM})
STAND_ALONE = frozenset(
    {
        Reason.ABOVE_MAXIMUM,
        Reason.POOL_TOO_SMALL,
        Reason.DRAINING,
        Reason.ENGINE,
        Reason.BUDGET,
        Reason.SESSIONS,
    }
)
"""Who waits for one of these is in nobody's way, and has nobody in its way."""
_NO_TRACE = STAND_ALONE | {Reason.BEHIND_OTHERS}
MINUTE = 60.0
SHORTEST_MINUTES = 5
"""Nobody is told to ask for less time than this."""
OTHER_GROUPS = 2
"""How many of the owner's other groups are tried."""
LOOKS_AHEAD_UP_TO = 64
"""Of so many holdings and requests: to let time pass for more takes too long for a page."""


class Change(StrEnum):
    """What could be asked for instead."""

    FEWER_DEVICES = "fewer_devices"
    ANY_MODEL = "any_model"
    SHORTER_LIMIT = "shorter_limit"
    OTHER_GROUP = "other_group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A form in which the request would start now, or sooner; it was tried.

    Attributes:
        devices: how many instead; None: as many as now. ``seconds`` and ``group`` likewise.
        expected: when it would start; None: now.
    """

    change: Change
    devices: int | None = None
    seconds: float | None = None
    group: str | None = None
    expected: Estimate | None = None


class Way:
    """The way along the queue of one plan.

    Attributes:
        walk: what the next request in the queue would find.
        known: those that wait in the snapshot, by id.
    """

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.known: Mapping[str, Waiting] = {each.id: each for each in snapshot.waiting}
        books = Books(snapshot, now)
        debts = cache(lambda: debts_of(snapshot, books))
        self.walk = Walk(books, Asking(lambda: snapshot.holdings, debts))
        self._met: set[tuple[Reason, str, str]] = set()

    def copy(self) -> Way:
        made = copy(self)
        made.walk, made._met = self.walk.copy(), self._met.copy()
        return made

    def along(self, waits: Iterable[Wait]) -> Way:
        """Further along the queue, past these."""
        for wait in waits:
            if wait.reason in _NO_TRACE:
                continue
            request = self.known.get(wait.request_id)
            if request is None:
                continue
            if wait.reason in LIMITS:
                owner = request.owner if wait.reason is Reason.USER_MAXIMUM else ""
                key = (wait.reason, wait.detail, owner)
                if key in self._met:
                    continue
                self._met.add(key)
            elif self.walk.backfill is not None and wait.reason is not Reason.RECLAIMING:
                continue
            self.walk.serve(request)
        if self.walk.backfill is not None:
            self.walk.backfill.look_ahead(self.walk.line)
        return self


def suggestions(
    request: Waiting, here: Way, behind: Iterable[Wait], groups: Iterable[str]
) -> Iterator[Suggestion]:
    """What would start now in place of a request, tried from its place in the queue.

    1. as many devices as would start now
    2. a device of any model
    3. a time limit that ends before the head starts, or before the next reservation
    4. another group, tried behind everybody else, since its place there is not known

    A smaller or shorter request never stands further back than the one that it replaces (one
    with a deadline may: it is tried behind everybody), so that what is found here is found by
    ``decide`` as well.
    """
    if not request.devices:
        return
    end = _Once(here, behind)
    walk = here.walk if request.deadline is None else end.walk
    forms = chain(_fewer(request), _any_model(request), _shorter(request, walk))
    found: set[Change] = set()
    for suggestion in forms:
        if suggestion.change not in found and starts(changed(request, suggestion), walk):
            found.add(suggestion.change)
            yield suggestion
    for group in islice(groups, OTHER_GROUPS):
        suggestion = Suggestion(change=Change.OTHER_GROUP, group=group)
        other = limits(here.walk.books.tree, group)
        if group == request.group or other is None or other.max_seconds < request.seconds:
            continue
        if starts(changed(request, suggestion), end.walk):
            yield suggestion


def sooner(request: Waiting, wait: Wait, snapshot: Snapshot, now: float) -> Iterator[Suggestion]:
    """What would start later than now, but sooner than the request; where little is going on."""
    before = wait.estimate
    small = max(len(snapshot.holdings), len(snapshot.waiting)) <= LOOKS_AHEAD_UP_TO
    if before is None or not small:
        return
    for suggestion in chain(islice(reversed(tuple(_fewer(request))), 1), _any_model(request)):
        other = changed(request, suggestion)
        waiting = (other if each is request else each for each in snapshot.waiting)
        plan = decide(replace(snapshot, waiting=tuple(waiting)), now)
        after = next((each.estimate for each in plan.waits if each.request_id == other.id), None)
        if after and after.at + MINUTE <= before.at and after.latest <= before.latest:
            yield replace(suggestion, expected=after)


def changed(request: Waiting, suggestion: Suggestion) -> Waiting:
    """The request as it would be, were the suggestion followed."""
    seconds = request.seconds if suggestion.seconds is None else suggestion.seconds
    return replace(
        request,
        devices=request.devices if suggestion.devices is None else suggestion.devices,
        model=None if suggestion.change is Change.ANY_MODEL else request.model,
        seconds=seconds,
        expected=None if request.expected is None else min(request.expected, seconds),
        group=request.group if suggestion.group is None else suggestion.group,
    )


class _Once:
    """The walk behind everybody else, made when it is first asked for."""

    def __init__(self, here: Way, behind: Iterable[Wait]) -> None:
        self._here, self._behind = here, behind

    @cached_property
    def walk(self) -> Walk:
        return self._here.copy().along(self._behind).walk


def starts(request: Waiting, walk: Walk) -> bool:
    """Whether it would start now, from that place in the queue. The walk does not change."""
    return not isinstance(walk.copy().serve(request), Held)


def _fewer(request: Waiting) -> Iterator[Suggestion]:
    """A few sizes, the largest first; a gang has said itself with how few it starts."""
    if request.gang or request.share is not None:
        return
    sizes = sorted({request.devices - 1, request.devices // 2, 1}, reverse=True)
    for devices in sizes:
        if 0 < devices < request.devices:
            yield Suggestion(change=Change.FEWER_DEVICES, devices=devices)


def _any_model(request: Waiting) -> Iterator[Suggestion]:
    if request.model is not None:
        yield Suggestion(change=Change.ANY_MODEL)


def _shorter(request: Waiting, walk: Walk) -> Iterator[Suggestion]:
    """Time limits that would end before something: the longest first."""
    head = walk.backfill
    ends = (inf if head is None or head.at is None else head.at, walk.books.next_edge())
    for end in sorted(set(ends), reverse=True):
        minutes = (end - walk.books.now) // MINUTE if end < inf else 0
        if SHORTEST_MINUTES <= minutes < request.seconds / MINUTE:
            yield Suggestion(change=Change.SHORTER_LIMIT, seconds=minutes * MINUTE)
