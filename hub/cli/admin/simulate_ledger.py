"""The history of a site as a trace: requests, and their usage from the ledger."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from ...config.state_folder import StateFolder
from ...errors import InvalidInput
from ...interfaces.store import Store
from ...records.gangs import JobGang
from ...records.requests import RequestFilter, RequestRecord
from ...records.usage import LedgerFilter, UsageBy
from ...scheduling.model.snapshot import Device, Group
from ...scheduling.model.states import TERMINAL
from ...simulation.workload.calendar import Calendar
from ...simulation.workload.jobs import Gang, Trace, TraceJob
from ...simulation.workload.nodes import ONE_POOL, parse_nodes
from ...simulation.workload.reader import Selection
from ..common.site_store import site_store

_PAGE = 1000
_MORE = "+"
"""Prefix of nodes that are added to the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The requests and devices of a site."""

    trace: Trace
    groups: tuple[Group, ...]
    devices: tuple[Device, ...]
    calendar: Calendar


def read_ledger(state: StateFolder, selection: Selection) -> Ledger:
    """Read all ended requests with devices.

    Raises:
        InvalidInput: the folder contains no site, or there is nothing to replay.
    """
    with site_store(state) as store, store.together():
        return Ledger(
            trace=_trace(store, selection),
            groups=store.groups(),
            devices=tuple(device for device in store.devices() if device.schedulable),
            calendar=Calendar(terms=store.terms(), reservations=store.reservations()),
        )


def site_devices(found: Sequence[Device], nodes: str | None) -> tuple[Device, ...]:
    """Return the devices of the site, more with ``+1x4``, or others with ``6x8``.

    Devices without a model get the most frequent one of the site.

    Raises:
        InvalidInput: these are not nodes, or they belong to a tenant.
    """
    if nodes is None:
        return tuple(found)
    pools = parse_nodes(nodes.removeprefix(_MORE)).pools()
    if ONE_POOL not in pools:
        raise InvalidInput(
            f"With --from-ledger tenants cannot have their own nodes, as in {nodes!r}.",
            accepted="+1x4 adds a node of four devices; 6x8 replaces them with six of eight.",
            field="nodes",
        )
    made = pools[ONE_POOL]
    models = Counter(device.model for device in found)
    model = models.most_common(1)[0][0] if models else ""
    new = tuple(replace(each, model=each.model or model, node=f"new-{each.node}") for each in made)
    return (*found, *new) if nodes.startswith(_MORE) else new


def describe_site(nodes: str | None) -> str:
    """Describe the devices of a replay for its report."""
    if nodes is None:
        return "the site"
    return f"the site {nodes}" if nodes.startswith(_MORE) else nodes


def _trace(store: Store, selection: Selection) -> Trace:
    left_out = Counter[str]()
    jobs: list[TraceJob] = []
    used = {
        row.request_id: row.total
        for row in store.used(LedgerFilter(), UsageBy.REQUEST, now=time.time())
    }
    for request in _requests(store):
        if not selection.since <= request.submitted_at <= selection.until:
            continue
        device_seconds = used.get(request.id, 0.0)
        if request.devices == 0:
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
    raise InvalidInput(
        f"The ledger has nothing to replay yet: {reasons or 'there are no requests'}.",
        accepted="Only ended requests with devices are replayed, within --from and --to.",
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
    while page := store.requests(RequestFilter(limit=_PAGE, before=before)):
        yield from page
        before = page[-1].id
