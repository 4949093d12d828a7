"""The history of a site as a trace: requests, and their usage from the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NoReturn

from ...errors import InvalidInput, NothingToReplay
from ...interfaces.store import Store
from ...records.gangs import JobGang
from ...records.requests import RequestFilter, RequestRecord
from ...records.usage import DAY, LedgerFilter, UsageBy
from ...scheduling.model.snapshot import Device, Group
from ...scheduling.model.states import TERMINAL
from ...simulation.workload.calendar import Calendar
from ...simulation.workload.jobs import Gang, Trace, TraceJob
from ...simulation.workload.nodes import MOST_DEVICES, ONE_POOL, parse_nodes
from ...simulation.workload.reader import Selection

PAGE = 1000
_CLOCK_SECONDS = DAY
"""How far the clock may have been set back between two requests."""
_MORE = "+"
"""Prefix of nodes that are added to the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteHistory:
    """The requests and devices of a site."""

    trace: Trace
    groups: tuple[Group, ...]
    devices: tuple[Device, ...]
    calendar: Calendar


def site_devices(
    found: Sequence[Device], nodes: str | None, *, most: int = MOST_DEVICES
) -> tuple[Device, ...]:
    """Return the devices of the site, more with ``+1x4``, or others with ``6x8``.

    Devices without a model get the most frequent one of the site.

    Raises:
        InvalidInput: these are not nodes, they belong to a tenant, or have more than ``most``
            devices.
    """
    if nodes is None:
        return tuple(found)
    layout = parse_nodes(nodes.removeprefix(_MORE))
    if ONE_POOL not in layout.blocks:
        raise InvalidInput(
            f"With --from-ledger tenants cannot have their own nodes, as in {nodes!r}.",
            accepted="+1x4 adds a node of four devices; 6x8 replaces them with six of eight.",
            field="nodes",
        )
    if layout.devices > most:
        raise InvalidInput(
            f"{layout.devices:,} devices are too many.",
            accepted=f"At most {most:,} are accepted.",
            field="nodes",
        )
    made = layout.pool(ONE_POOL)
    models = Counter(device.model for device in found)
    model = models.most_common(1)[0][0] if models else ""
    new = tuple(replace(each, model=each.model or model, node=f"new-{each.node}") for each in made)
    return (*found, *new) if nodes.startswith(_MORE) else new


def describe_site(nodes: str | None) -> str:
    """Describe the devices of a replay for its report."""
    if nodes is None:
        return "the site"
    return f"the site {nodes}" if nodes.startswith(_MORE) else nodes


def read_history(
    store: Store, selection: Selection, *, now: float, most: float = inf
) -> SiteHistory:
    """Read the ended requests with devices that were submitted in a period, the newest ``most``.

    Raises:
        NothingToReplay: no request of the period can be replayed.
    """
    with store.together():
        return SiteHistory(
            trace=_trace(store, selection, now=now, most=most),
            groups=store.groups(),
            devices=tuple(device for device in store.devices() if device.schedulable),
            calendar=Calendar(terms=store.terms(), reservations=store.reservations()),
        )


def _trace(store: Store, selection: Selection, *, now: float, most: float) -> Trace:
    left_out = Counter[str]()
    jobs: list[TraceJob] = []
    used = {
        row.request_id: row.total
        for row in store.used(
            LedgerFilter(since=None if selection.since == -inf else selection.since),
            UsageBy.REQUEST,
            now=now,
        )
    }
    for request in _requests(store):
        if request.submitted_at < selection.since - _CLOCK_SECONDS:
            break
        if not selection.since <= request.submitted_at <= selection.until:
            continue
        device_seconds = used.get(request.id, 0.0)
        if len(jobs) >= most:
            left_out[f"were submitted before the newest {most:,.0f}"] += 1
        elif request.devices == 0:
            left_out["requested no devices"] += 1
        elif request.state not in TERMINAL:
            left_out["have not ended"] += 1
        elif device_seconds <= 0:
            left_out["ended before they held a device, or were charged nothing"] += 1
        else:
            jobs.append(_job(request, device_seconds / request.devices))
    if not jobs:
        _raise_empty(left_out)
    jobs.sort(key=lambda job: (job.submitted_at, job.id))
    return Trace(name="the ledger", jobs=tuple(jobs), left_out=dict(left_out))


def _raise_empty(left_out: Counter[str]) -> NoReturn:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    raise NothingToReplay(
        f"The ledger has nothing to replay yet: {reasons or 'there are no requests'}.",
        accepted="Only ended requests with devices are replayed, of the chosen period.",
    )


def _job(request: RequestRecord, seconds: float) -> TraceJob:
    return TraceJob(
        id=request.id,
        user=request.owner,
        tenant=request.group,
        devices=request.devices,
        seconds=float(int(seconds)),
        submitted_at=request.submitted_at,
        limit=float(request.seconds),
        model=request.model,
        gang=_gang(request.gang),
        kind=request.kind,
        priority=request.priority,
        preemptible=request.preemptible,
        deadline=request.deadline,
    )


def _gang(gang: JobGang | None) -> Gang | None:
    """Return the members with devices, if all have as many: a trace describes no others."""
    roles = [role for role in gang.roles if role.devices] if gang is not None else []
    if gang is None or len({role.devices for role in roles}) != 1:
        return None
    return Gang(
        members=sum(role.wanted for role in roles),
        minimum=sum(role.minimum for role in roles),
        arrangement=gang.arrangement,
    )


def _requests(store: Store) -> Iterator[RequestRecord]:
    """Yield all requests, newest first."""
    before: str | None = None
    while page := store.requests(RequestFilter(limit=PAGE, before=before)):
        yield from page
        before = page[-1].id
