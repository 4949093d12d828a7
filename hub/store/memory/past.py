"""What looks back, for the store that forgets: the same answers from what lies in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import fsum

from ...records.leases import LeaseRecord
from ...records.ledger import LedgerEntry
from ...records.requests import RequestRecord
from ...records.usage import (
    WAIT_BOUNDS,
    Census,
    Flow,
    Granted,
    LedgerFilter,
    Levels,
    UsageBy,
    UsageRow,
    WaitCount,
    Window,
)
from ...scheduling.model.snapshot import DecayedUsage, Device, Kind
from ...scheduling.quota.accounting import decayed
from ...usage.aggregation import UsageInterval, added_up, charged, flow, of_one_device, portions
from ..rules.conversions import EPSILON

Requests = Mapping[str, RequestRecord]
Intervals = Iterable[tuple[str, UsageInterval]]
"""Each with the lease that it is of."""


def charged_since(lines: Iterable[LedgerEntry], since: float) -> Mapping[str, float]:
    """Device-seconds by group; of a line that began before, what came after."""
    found: dict[str, float] = {}
    for line in lines:
        if line.ends_at > since:
            part = (line.ends_at - max(line.starts_at, since)) / (line.ends_at - line.starts_at)
            found[line.group] = found.get(line.group, 0.0) + line.device_seconds * part
    return found


def decayed_use(
    lines: Iterable[LedgerEntry], at: float, half_life: float
) -> tuple[DecayedUsage, ...]:
    """Formula and moment are explained in ``scheduling.accounting`` and ``store.pool``."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        found.setdefault((line.group, line.owner), []).append(decayed(line, at, half_life))
    return tuple(
        DecayedUsage(group=group, owner=owner, device_seconds=fsum(found[group, owner]))
        for group, owner in sorted(found)
        if fsum(found[group, owner]) > EPSILON
    )


def used(intervals: Intervals, which: LedgerFilter, by: UsageBy) -> tuple[UsageRow, ...]:
    chosen = (each for _, each in intervals if which.takes(each.owner, each.group))
    return added_up((part for each in chosen for part in portions(each, which, by)), by)


def intervals(
    lines: Iterable[LedgerEntry], live: Iterable[LeaseRecord], requests: Requests, now: float
) -> Intervals:
    """What stands in the ledger, and what live leases have used since."""
    return (*((line.lease_id, charged(line)) for line in lines), *_open(live, requests, now))


def of_each_device(
    found: Intervals, leases: Mapping[str, LeaseRecord], known: Mapping[str, Device]
) -> Intervals:
    """The same, of each device of a lease by itself."""
    for lease_id, interval in found:
        held = leases[lease_id].devices
        for device in held:
            model = known[device].model if device in known else ""
            yield lease_id, of_one_device(interval, len(held), model)


def _open(live: Iterable[LeaseRecord], requests: Requests, now: float) -> Intervals:
    for lease in live:
        request = requests[lease.request_id]
        if request.devices and lease.charged_until < now:
            yield (
                lease.id,
                UsageInterval(
                    owner=request.owner,
                    group=request.group,
                    request_id=request.id,
                    starts_at=lease.charged_until,
                    ends_at=now,
                    device_seconds=request.devices * (now - lease.charged_until),
                    open=True,
                ),
            )


def ledger_lines(
    lines: Iterable[LedgerEntry], which: LedgerFilter, limit: int, before: int | None
) -> tuple[LedgerEntry, ...]:
    found = [
        line
        for line in lines
        if which.takes(line.owner, line.group)
        and (which.since is None or line.ends_at > which.since)
        and (which.until is None or line.starts_at < which.until)
        and (before is None or line.id < before)
    ]
    return tuple(reversed(found))[: max(0, limit)]


def granted(
    leases: Iterable[LeaseRecord], requests: Requests, window: Window
) -> tuple[Granted, ...]:
    return tuple(
        Granted(request.kind, lease.granted_at, lease.granted_at - request.submitted_at)
        for lease, request in _waited(leases, requests)
        if window.since <= lease.granted_at < window.until and _counts(request, window)
    )


def levels(leases: Iterable[LeaseRecord], requests: Requests, window: Window) -> Levels:
    granted = {(lease.request_id, lease.epoch): lease for lease in leases}
    lent = [
        (lease.granted_at, lease.released_at, requests[lease.request_id].devices)
        for lease in granted.values()
        if _counts(requests[lease.request_id], window)
    ]
    asked = [
        (r.submitted_at, granted[r.id, 1].granted_at if (r.id, 1) in granted else r.ended_at, 1)
        for r in requests.values()
        if _counts(r, window)
    ]
    leased, released = _flows(window, lent)
    queued, left = _flows(window, asked)
    return Levels(leased=leased, released=released, queued=queued, left=left)


def _flows(
    window: Window, spans: Iterable[tuple[float, float | None, int]]
) -> tuple[tuple[Flow, ...], tuple[Flow, ...]]:
    touching = [
        (start, end, amount)
        for start, end, amount in spans
        if start < window.until and (end is None or end > window.since)
    ]
    ended = [(end, amount) for _, end, amount in touching if end is not None and end < window.until]
    return flow(window, ((start, amount) for start, _, amount in touching)), flow(window, ended)


def _counts(request: RequestRecord, window: Window) -> bool:
    return request.devices > 0 and window.group in (None, request.group)


def _waited(
    leases: Iterable[LeaseRecord], requests: Requests
) -> Iterator[tuple[LeaseRecord, RequestRecord]]:
    """What was granted devices for the first time."""
    for lease in leases:
        request = requests[lease.request_id]
        if lease.epoch == 1 and request.devices:
            yield lease, request


def all_waits(leases: Iterable[LeaseRecord], requests: Requests) -> dict[Kind, WaitCount]:
    found: dict[Kind, list[float]] = {}
    for lease, request in _waited(leases, requests):
        found.setdefault(request.kind, []).append(lease.granted_at - request.submitted_at)
    return {
        kind: WaitCount(
            within=tuple(sum(wait <= bound for wait in several) for bound in WAIT_BOUNDS),
            count=len(several),
            seconds=fsum(several),
        )
        for kind, several in found.items()
    }


def census(
    leases: Iterable[LeaseRecord], live: Iterable[LeaseRecord], requests: Requests
) -> Census:
    return Census(
        ends=Counter(
            (request.kind, request.cause.code)
            for request in requests.values()
            if request.ended_at is not None and request.cause is not None
        ),
        leases=Counter(requests[lease.request_id].kind for lease in live),
        waits=all_waits(leases, requests),
        size_bytes=0,
    )
