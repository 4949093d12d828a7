"""Usage, wait times and utilization from ledger entries and leases: pure functions.

A ledger entry that spans midnight (UTC) is split between the days by overlap; the parts add up
to the entry. Utilization is the mean over a part of a window, computed from the leases that
began and ended in it, without reading every lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, fsum, inf

from ..records.ledger import LedgerEntry
from ..records.usage import (
    DAY,
    Capacity,
    Flow,
    Granted,
    LedgerFilter,
    UsageBy,
    UsageRow,
    WaitRow,
    Waits,
    Window,
)
from ..scheduling.model.snapshot import Kind

BY_DEVICE = frozenset({UsageBy.MODEL, UsageBy.OWNER_MODEL})
"""The keys for which the charge of a lease is divided between its devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageInterval:
    """Device-seconds of one lease between two moments; ``open`` is not in the ledger yet.

    ``model`` is set if the interval covers a single device of the lease.
    """

    owner: str
    group: str
    request_id: str
    starts_at: float
    ends_at: float
    device_seconds: float
    open: bool = False
    model: str = ""


def charged(line: LedgerEntry) -> UsageInterval:
    """Return the interval of a ledger entry."""
    return UsageInterval(
        owner=line.owner,
        group=line.group,
        request_id=line.request_id,
        starts_at=line.starts_at,
        ends_at=line.ends_at,
        device_seconds=line.device_seconds,
    )


def of_one_device(interval: UsageInterval, devices: int, model: str) -> UsageInterval:
    """Return the equal share of one device in the interval of a lease."""
    return replace(interval, device_seconds=interval.device_seconds / devices, model=model)


def split(start: float, end: float, amount: float, edges: Sequence[float]) -> list[float]:
    """Split an amount spread evenly over a span at the edges in it; the parts sum to it."""
    cuts = [start, *(edge for edge in edges if start < edge < end), end]
    parts = [amount * (b - a) / (end - start) for a, b in pairwise(cuts)]
    parts[-1] = amount - fsum(parts[:-1])
    return parts


def midnights(start: float, end: float) -> list[float]:
    """Return the midnights (UTC) within a span."""
    first, last = floor(start / DAY) + 1, ceil(end / DAY)
    return [day * DAY for day in range(first, last)]


def portions(interval: UsageInterval, which: LedgerFilter, by: UsageBy) -> Iterator[UsageRow]:
    """Yield the parts of an interval in the window, with the key that they are summed by."""
    start, end = interval.starts_at, interval.ends_at
    since = -inf if which.since is None else which.since
    until = inf if which.until is None else which.until
    of_person = by in (UsageBy.OWNER, UsageBy.OWNER_MODEL, UsageBy.REQUEST)
    edges = sorted({since, until, *(midnights(start, end) if by is UsageBy.DAY else ())})
    cuts = [start, *(edge for edge in edges if start < edge < end), end]
    parts = split(start, end, interval.device_seconds, edges) if end > start else []
    for (first, last), amount in zip(pairwise(cuts), parts, strict=False):
        if last <= since or first >= until:
            continue
        yield UsageRow(
            owner=interval.owner if of_person else "",
            group=interval.group if of_person else "",
            request_id=interval.request_id if by is UsageBy.REQUEST else "",
            day=floor(first / DAY) * DAY if by is UsageBy.DAY else None,
            model=interval.model if by in BY_DEVICE else "",
            charged=0.0 if interval.open else amount,
            open=amount if interval.open else 0.0,
            first=first,
            last=last,
        )


def added_up(found: Iterable[UsageRow], by: UsageBy) -> tuple[UsageRow, ...]:
    """Sum rows of the same key; return them in order."""
    rows: dict[tuple[object, ...], list[UsageRow]] = {}
    for used in found:
        key = (used.day, used.week, used.term, used.owner, used.group, used.request_id, used.model)
        rows.setdefault(key, []).append(used)
    totals = [
        parts[0]
        if len(parts) == 1
        else replace(
            parts[0],
            charged=fsum(part.charged for part in parts),
            open=fsum(part.open for part in parts),
            first=min(part.first for part in parts),
            last=max(part.last for part in parts),
        )
        for parts in rows.values()
    ]
    if by is UsageBy.REQUEST:
        return tuple(sorted(totals, key=lambda row: (-row.last, row.request_id)))
    if by in (UsageBy.DAY, UsageBy.WEEK, UsageBy.TERM):
        return tuple(sorted(totals, key=lambda row: row.first))
    return tuple(sorted(totals, key=lambda row: (row.owner, row.group, row.model)))


def every_day(rows: Sequence[UsageRow], since: float, until: float) -> tuple[UsageRow, ...]:
    """Return rows by day, with empty rows for days without usage."""
    known = {row.day: row for row in rows}
    first, last = floor(since / DAY), ceil(until / DAY)
    days = [day * DAY for day in range(first, last)]
    return tuple(known.get(day) or UsageRow(day=day, first=day, last=day) for day in days)


# -- wait times and utilization ---------------------------------------------------------------


def nearest_rank(ordered: Sequence[float], percent: int) -> float:
    """Return the percentile of sorted values by the nearest-rank method."""
    return ordered[-(-percent * len(ordered) // 100) - 1]


def waits_of_parts(window: Window, granted: Iterable[Granted]) -> list[dict[Kind, list[float]]]:
    """Return sorted wait times by kind for every part of the window in which they ended."""
    parts: list[dict[Kind, list[float]]] = [{} for _ in range(window.buckets)]
    since, width, last = window.since, window.width, window.buckets - 1
    for grant in granted:
        part = parts[min(int((grant.at - since) / width), last)]
        part.setdefault(grant.kind, []).append(grant.waited)
    for part in parts:
        for waits_of_kind in part.values():
            waits_of_kind.sort()
    return parts


def ranked(parts: Iterable[Mapping[Kind, Sequence[float]]]) -> Waits:
    """Return wait statistics of every part and of the whole window from sorted wait times."""
    rows, whole = list[WaitRow](), dict[Kind, list[float]]()
    for bucket, part in enumerate(parts):
        for kind in sorted(part):
            rows.append(_wait_row(bucket, kind, part[kind]))
            whole.setdefault(kind, []).extend(part[kind])
    overall = [_wait_row(0, kind, sorted(whole[kind])) for kind in sorted(whole)]
    return Waits(parts=tuple(rows), whole=tuple(overall))


def waits(window: Window, granted: Iterable[Granted]) -> Waits:
    """Return wait statistics of the requests that were first granted devices in a window."""
    return ranked(waits_of_parts(window, granted))


def _wait_row(bucket: int, kind: Kind, ordered: Sequence[float]) -> WaitRow:
    return WaitRow(
        bucket=bucket,
        kind=kind,
        count=len(ordered),
        median=nearest_rank(ordered, 50),
        ninetieth=nearest_rank(ordered, 90),
    )


def bucket_of(window: Window, at: float) -> int:
    return int((at - window.since) / window.width)


def mean_levels(
    window: Window, begun: Sequence[Flow], ended: Sequence[Flow], now: float
) -> tuple[float, ...]:
    """Return the mean level in every part of the window that has begun by ``now``.

    At time t, a lease that began at s has lasted t - s, so the total duration depends only on
    the amount that began and the sum of the s. The mean level of a part is the growth of that
    total within the part, divided by the length of the part.
    """
    amounts, offsets = [0.0] * window.buckets, [0.0] * window.buckets
    for flows, sign in ((begun, 1.0), (ended, -1.0)):
        for flow in flows:
            bucket = min(flow.bucket, window.buckets - 1)
            amounts[bucket] += sign * flow.amount
            offsets[bucket] += sign * flow.offset
    levels: list[float] = []
    amount, offset = 0.0, 0.0
    for bucket in range(window.buckets):
        start = bucket * window.width
        end = min((bucket + 1) * window.width, now - window.since)
        if end <= start:
            break
        before = amount * start - offset
        amount, offset = amount + amounts[bucket], offset + offsets[bucket]
        levels.append(max(0.0, (amount * end - offset - before) / (end - start)))
    return tuple(levels)


def mean_capacity(
    window: Window, changes: Sequence[Capacity], now: float
) -> tuple[float | None, ...]:
    """Return the mean number of healthy devices per begun part; None before the first count."""
    means: list[float | None] = []
    ends = [*(change.at for change in changes[1:]), inf]
    for bucket in range(window.buckets):
        start = window.since + bucket * window.width
        end = min(start + window.width, now)
        if end <= start:
            break
        seconds = known = 0.0
        for change, until in zip(changes, ends, strict=False):
            overlap = max(0.0, min(until, end) - max(change.at, start))
            seconds, known = seconds + overlap * change.healthy, known + overlap
        means.append(seconds / known if known else None)
    return tuple(means)


def share(leased: Sequence[float], healthy: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the fraction of healthy device time that was on lease; None if there was none.

    A device that fails under a lease is still on lease, so the fraction is capped at 1.
    """
    return tuple(
        min(1.0, used / available) if available else None
        for used, available in zip(leased, healthy, strict=True)
    )
