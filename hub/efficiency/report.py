"""What requests held and did not use in a week: for their owners, then for the group's teachers.

The owner sees the running week at any time. Teachers of the group and administrators see a week
when it has ended, so that the owner has had it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ..errors import InvalidInput, NotFound
from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..messages import job_signs
from ..messages.requests import session_name, work_title
from ..records.identity import Identity
from ..records.requests import RequestFilter, RequestRecord
from ..records.usage import DAY, LedgerFilter, UsageBy, UsageRow
from ..records.utilization import AttemptUtilization
from ..scheduling.model.snapshot import Kind
from ..scheduling.quota.tree import GroupTree
from ..schemas.usage import EfficiencyOut, EfficiencyRow
from ..usage.rollup import monday

WEEK: Final = 7 * DAY
LOW_PERCENT: Final = 30.0
"""Requests with less mean use of their devices are listed."""
IDLE_PERCENT: Final = 3.0
LEAST_SECONDS: Final = 360.0
"""Device-seconds below which a request is not listed."""
MOST_ROWS: Final = 100
_MOST_READ: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredUse:
    """How the devices of a request were used in a period.

    Attributes:
        measured: seconds in which their use is known, over its attempts.
        used: mean use, from 0 to 1; 0 without a measurement.
        idle: part of the measured time in which they were idle, from 0 to 1.
    """

    measured: float = 0.0
    used: float = 0.0
    idle: float = 0.0


def measured_use(attempts: Iterable[AttemptUtilization], since: float, until: float) -> MeasuredUse:
    """Return the use between two moments, each point weighted by its seconds in between."""
    measured = used = idle = 0.0
    for attempt in attempts:
        series = attempt.series
        begins = attempt.granted_at + series.begins
        for number, point in enumerate(series.points):
            if point.device_percent is None:
                continue
            first = max(since, begins + number * series.seconds)
            last = min(until, begins + (number + 1) * series.seconds)
            if last <= first:
                continue
            measured += last - first
            used += (last - first) * min(100.0, max(0.0, point.device_percent)) / 100
            idle += last - first if point.device_percent <= IDLE_PERCENT else 0.0
    if not measured:
        return MeasuredUse()
    return MeasuredUse(measured=measured, used=used / measured, idle=idle / measured)


@dataclass(frozen=True, slots=True)
class EfficiencyReports:
    """Reports of a week."""

    store: Store
    clock: Clock

    def report(self, who: Identity, *, week: float | None = None, group: str = "") -> EfficiencyOut:
        """Return what the caller's requests held and did not use, or those of a group.

        Args:
            week: any moment of it; by default the running week, for a group the last one.

        Raises:
            NotFound: the caller does not teach the group.
            InvalidInput: the week has not begun, or the week of a group has not ended.
        """
        now = self.clock()
        if group:
            self._check(who, group)
        default = monday(now) - (WEEK if group else 0.0)
        since = default if week is None else monday(week)
        self._check_week(since, now, group)
        until = min(now, since + WEEK)
        which = LedgerFilter(
            owner=None if group else who.name,
            groups=self._with_subgroups(group) if group else None,
            # Of the subgroups only those that the caller teaches too.
            reader=who.name if group and not who.admin else None,
            reader_groups=self.store.taught_by(who.name),
            since=since,
            until=until,
        )
        with self.store.together():
            sums = self.store.used(which, UsageBy.OWNER, now=now)
            found = self.store.used_requests(which, now=now, most=_MOST_READ)
            rows = self._rows(found.rows, since, until)
        known = [row for row in rows if row.used is not None]
        low = [row for row in known if _is_low(row)]
        low.sort(key=lambda row: (-row.unused_device_seconds, row.request_id))
        return EfficiencyOut(
            group=group,
            since=since,
            until=until,
            ended=since + WEEK <= now,
            device_seconds=sum(each.total for each in sums),
            measured_device_seconds=sum(row.device_seconds for row in known),
            unused_device_seconds=sum(row.unused_device_seconds for row in known),
            low_percent=LOW_PERCENT,
            rows=low[:MOST_ROWS],
            left_out=max(0, len(low) - MOST_ROWS) + max(0, found.total - len(found.rows)),
        )

    def _check(self, who: Identity, group: str) -> None:
        groups = {each.name for each in self.store.groups()}
        if group not in groups or not (who.admin or group in self.store.taught_by(who.name)):
            raise NotFound(f"There is no group {group} that you teach.")

    def _check_week(self, since: float, now: float, group: str) -> None:
        if since > now:
            raise InvalidInput(
                f"The week from {day_text(since)} has not begun.",
                accepted=f"A day until {day_text(now)}.",
                field="week",
            )
        if group and since + WEEK > now:
            raise InvalidInput(
                f"The week from {day_text(since)} has not ended: until then only the owners see "
                "their requests.",
                accepted=f"A day until {day_text(monday(now) - DAY)}, or no group.",
                field="week",
            )

    def _with_subgroups(self, group: str) -> frozenset[str]:
        return GroupTree(self.store.groups()).subtree(group) | {group}

    def _rows(self, used: Sequence[UsageRow], since: float, until: float) -> list[EfficiencyRow]:
        ids = frozenset(row.request_id for row in used)
        which = RequestFilter(ids=ids, limit=len(ids))
        records = {each.id: each for each in (self.store.requests(which) if ids else ())}
        return [
            _row(row, records[row.request_id], self._use(row.request_id, since, until))
            for row in used
            if row.request_id in records
        ]

    def _use(self, request_id: str, since: float, until: float) -> MeasuredUse:
        return measured_use(self.store.utilization(request_id), since, until)


def _row(row: UsageRow, record: RequestRecord, use: MeasuredUse) -> EfficiencyRow:
    job, lease = record.job, record.lease
    title = (
        session_name(record.server_name)
        if record.kind is Kind.SESSION
        else work_title(
            record.kind.value,
            job.notebook_name if job else "",
            job.command if job else (),
            record.labels,
        )
    )
    return EfficiencyRow(
        request_id=record.id,
        kind=record.kind.value,
        title=title,
        owner=record.owner,
        group=record.group,
        device_seconds=row.total,
        used=use.used if use.measured else None,
        idle=use.idle if use.measured else None,
        unused_device_seconds=row.total * (1 - use.used) if use.measured else 0.0,
        signs=[job_signs.TITLES[sign.kind] for sign in lease.signs] if lease else [],
    )


def _is_low(row: EfficiencyRow) -> bool:
    long = row.device_seconds >= LEAST_SECONDS
    return long and row.used is not None and 100 * row.used < LOW_PERCENT


def day_text(at: float) -> str:
    """``2026-11-23``, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
