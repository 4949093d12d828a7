"""Reports on usage, utilization and wait times, with their access checks, as response bodies.

Users see their own charges, teachers those of their groups, administrators everything.
Utilization and wait times describe other users, so they are for administrators, and for the
teachers of a course.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import get_args

from ..errors import Forbidden, InvalidInput, NotFound
from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..records.identity import Identity, Viewer
from ..records.usage import DAY, LedgerFilter, UsageBy, UsageRow, WaitRow, Window
from ..scheduling.quota.tree import GroupTree
from ..schemas import UsageReport, UsageRowOut
from ..schemas.usage import HistoryOut, PeriodOut, Span, WaitsOut
from . import aggregation
from .budgets import BudgetQueries
from .pool_history import PoolHistoryCache
from .rollup import regrouped
from .serializers import ledger_out, usage_out

MOST_ROWS = 1000
HOUR = 3600.0
_SPANS = MappingProxyType({"day": (24, HOUR), "week": (28, 6 * HOUR), "term": (18, 7 * DAY)})
"""Number and length of the parts; a term has 18 weeks."""
_MONDAY = 4 * DAY
"""The first Monday after 1 January 1970 (UTC): periods are aligned to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """A query for device-seconds; empty fields match all.

    Attributes:
        group: including its descendants.
        mine: only the caller's charges; None means True unless a group is given.
        rows: maximum number of sums; by request, the newest.
        lines: maximum number of ledger entries, the newest.
        before: only ledger entries with a smaller id.
        counted: return how many sums are left out, instead of whether any are.
    """

    group: str = ""
    since: float | None = None
    until: float | None = None
    by: UsageBy = UsageBy.OWNER
    mine: bool | None = None
    rows: int = MOST_ROWS
    lines: int = MOST_ROWS
    before: int | None = None
    counted: bool = True


@dataclass(frozen=True, slots=True)
class UsageReports:
    """Usage reports for the calling user; data that the user may not see is omitted."""

    store: Store
    clock: Clock
    budgets: BudgetQueries
    past: PoolHistoryCache = field(default_factory=PoolHistoryCache)

    def totals(self, who: Identity) -> UsageReport:
        """Return the total charges of the user by group."""
        by_group = self.store.usage(now=self.clock(), owner=who.name)
        return UsageReport(
            device_seconds=sum(usage.total for usage in by_group),
            by_group=[usage_out(usage) for usage in by_group],
            ledger=[],
            ledger_complete=False,
        )

    def report(
        self,
        who: Identity,
        query: UsageQuery,
        *,
        now: float | None = None,
        groups_of: Collection[str] | None = None,
    ) -> UsageReport:
        """Return sums of device-seconds, their parts, and the ledger entries.

        Args:
            now: until when running work is counted; the present if not given.
            groups_of: the user's groups, if the caller knows them already.

        Raises:
            InvalidInput: the span ends before it begins.
            NotFound: an administrator names a group that never existed.
        """
        _check_span(query.since, query.until)
        store, now = self.store, self.clock() if now is None else now
        which = self._which(who, query)
        budgets = self.budgets.budgets(who, query.group, groups_of=groups_of)
        with store.together():
            by_owner = store.used(which, UsageBy.OWNER, now=now)
            if query.group and not by_owner and who.admin:
                store.group(query.group)
            match query.by:
                case UsageBy.REQUEST:
                    found = store.used_requests(
                        which, now=now, most=query.rows + 1, counted=query.counted
                    )
                    rows, total = found.rows, found.total
                case UsageBy.OWNER | UsageBy.USER | UsageBy.GROUP as by:
                    rows = regrouped(by_owner, which, by, groups=store.groups, terms=store.terms)
                    total = len(rows)
                case _:
                    rows = store.used(which, query.by, now=now)
                    total = len(rows)
            # Without requested entries, the ledger is not read at all.
            most = query.lines + 1 if query.lines else 0
            lines = store.ledger_lines(which, limit=most, before=query.before) if most else ()
        return UsageReport(
            device_seconds=sum(used.total for used in by_owner),
            by_group=[usage_out(used) for used in by_owner],
            by=query.by.value,
            since=query.since,
            until=query.until,
            rows=[row_out(used) for used in rows[: query.rows]],
            budgets=budgets,
            rows_left_out=max(0, total - query.rows),
            ledger=[ledger_out(line) for line in reversed(lines[: query.lines])],
            ledger_complete=0 < most > len(lines) and query.before is None,
        )

    def used(
        self, who: Identity, query: UsageQuery, by: UsageBy, *, now: float
    ) -> tuple[UsageRow, ...]:
        """Return the same device-seconds as ``report`` at this time, summed by another key."""
        which = self._which(who, query)
        return self.store.used(which, by, now=now)

    def pool(self, who: Identity, span: str, group: str = "") -> HistoryOut:
        """Return the utilization and wait times of one group or of all groups.

        Raises:
            Forbidden: all groups were requested, and the caller is not an administrator.
            NotFound: there is no such group, or the caller may not see it.
        """
        if group:
            self.check_course(who, group)
        elif not who.admin:
            raise Forbidden(
                "Only administrators may see the usage of the whole pool.",
                accepted="The name of a group that you teach.",
            )
        return self._history(_span(span), group)

    def check_course(self, who: Identity, group: str) -> None:
        """Raise NotFound unless the caller is a teacher of the group or an administrator."""
        known = {found.name for found in self.store.groups()}
        if group not in known or not (who.admin or group in self.teaches(who)):
            raise NotFound(f"There is no group {group} that you teach.")

    def teaches(self, who: Identity) -> list[str]:
        return sorted(self.store.taught_by(who.name))

    def _which(self, who: Identity, query: UsageQuery) -> LedgerFilter:
        own = not query.group if query.mine is None else query.mine
        teaches = self.store.taught_by(who.name)
        viewer = Viewer(identity=who, teaches=teaches)
        return LedgerFilter(
            owner=who.name if own else None,
            groups=self._with_those_below(query.group) if query.group else None,
            reader=None if own or viewer.sees_all else who.name,
            reader_groups=teaches,
            since=query.since,
            until=query.until,
        )

    def _with_those_below(self, group: str) -> frozenset[str]:
        return GroupTree(self.store.groups()).subtree(group) | {group}

    def _history(self, span: Span, group: str) -> HistoryOut:
        store, now = self.store, self.clock()
        window = window_of(span, now, group)
        with store.together():
            found, healthy_at = self.past.read(store, window, now), store.capacity(now)
        leased, waits = found.leased, found.waits
        healthy = aggregation.mean_capacity(window, healthy_at, now)
        shares = aggregation.share(leased, healthy)
        return HistoryOut(
            span=span,
            group=group,
            periods=[
                PeriodOut(
                    starts_at=window.since + number * window.width,
                    ends_at=window.since + (number + 1) * window.width,
                    leased=leased[number],
                    healthy=healthy[number],
                    share=shares[number],
                    queued=found.queued[number],
                    waits=[waits_out(row) for row in waits.parts if row.bucket == number],
                )
                for number in range(len(leased))
            ],
            waits=[waits_out(row) for row in waits.whole],
        )


def window_of(span: Span, now: float, group: str = "") -> Window:
    """Return the newest periods of this length, the last of which is not over yet."""
    count, width = _SPANS[span]
    until = _MONDAY + ((now - _MONDAY) // width + 1) * width
    return Window(since=until - count * width, until=until, buckets=count, group=group or None)


def row_out(used: UsageRow) -> UsageRowOut:
    return UsageRowOut(
        owner=used.owner,
        group=used.group,
        request_id=used.request_id,
        day=_day(used.day),
        week=_day(used.week),
        term=used.term,
        own=used.own,
        above=used.above,
        model=used.model,
        charged=used.charged,
        open=used.open,
        first_at=used.first,
        last_at=used.last,
    )


def _day(begins: float | None) -> str:
    return "" if begins is None else f"{datetime.fromtimestamp(begins, UTC):%Y-%m-%d}"


def waits_out(row: WaitRow) -> WaitsOut:
    return WaitsOut(
        kind=str(row.kind),
        count=row.count,
        median_seconds=row.median,
        ninetieth_seconds=row.ninetieth,
    )


def _check_span(since: float | None, until: float | None) -> None:
    if since is not None and until is not None and since >= until:
        raise InvalidInput("The span ends before it begins.", accepted="A 'since' before 'until'.")


def _span(text: str) -> Span:
    for span in get_args(Span):
        if text == span:
            found: Span = span
            return found
    raise InvalidInput(
        f"There is no span {text[:40]!r}.", accepted=f"One of: {', '.join(get_args(Span))}."
    )
