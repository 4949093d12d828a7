"""The ledger by model of device: each device of a lease has the same part of its lines.

A line says how many devices it is of; which ones they are stands with the lease, and their
models with the devices. A device that the pool no longer has, has no model any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from threading import Lock

from sqlalchemy import ColumnElement, Connection, Double, bindparam, func, literal, select

from ....records.usage import DAY, LedgerFilter, UsageBy, UsageRow
from ....usage.aggregation import UsageInterval, charged, of_one_device, portions
from ..tables.core import devices, lease_devices, leases, ledger, requests
from ..tables.days import first_day, spans_midnight
from ..tables.request_rows import to_ledger
from .daily_sums import DailySums, Sum
from .ledger_sums import EVERYTHING, LAST_LINE

MODEL = func.coalesce(devices.c.model, "").label("model")
OF_ONE_DEVICE = ledger.c.device_seconds / ledger.c.devices
LINES = ledger.join(lease_devices, lease_devices.c.lease_id == ledger.c.lease_id).outerjoin(
    devices, devices.c.id == lease_devices.c.device_id
)
"""Each line as often as its lease has devices."""

# Of everybody, a row for each device that is on lease.
OPEN = (
    select(requests.c.owner, requests.c.group_name, requests.c.id, literal(1).label("devices"))
    .add_columns(leases.c.charged_until, MODEL)
    .select_from(
        leases.join(requests)
        .join(lease_devices, lease_devices.c.lease_id == leases.c.id)
        .outerjoin(devices, devices.c.id == lease_devices.c.device_id)
    )
    .where(leases.c.released_at.is_(None))
    .where(leases.c.charged_until < bindparam("now", type_=Double))
)

_MODELS = select(devices.c.id, devices.c.model)


def lines(connection: Connection, *conditions: ColumnElement[bool]) -> Iterator[UsageInterval]:
    """Each line that these hold for, of each device of its lease by itself."""
    found = connection.execute(select(ledger, MODEL).select_from(LINES).where(*conditions)).all()
    for row, line in zip(found, to_ledger(found), strict=True):
        yield of_one_device(charged(line), line.devices, row.model)


@dataclass(slots=True)
class _ModelCache:
    """What the lines up to ``last`` add up to by model, while devices have these models."""

    models: Mapping[str, str] = field(default_factory=dict)
    last: int = 0
    sums: dict[str, DailySums] = field(default_factory=dict)

    def add(self, model: str, day: int, owner: str, group: str, new: Sum) -> None:
        self.sums.setdefault(model, DailySums()).add(day, owner, group, new)


class ModelSums:
    """As ``LedgerSums``. Where a device has come or gone, they are made anew."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known = _ModelCache()

    def used(
        self, connection: Connection, which: LedgerFilter, days: range | None
    ) -> list[UsageRow]:
        """By model, of these days; None means every day."""
        found: dict[str, Sum] = {}
        with self._lock:
            for model, sums in self._up_to_date(connection).items():
                for *_, each in sums.taken(which, days):
                    found.setdefault(model, Sum()).add(each)
        return [
            UsageRow(model=model, charged=each.charged, first=each.first, last=each.last)
            for model, each in found.items()
        ]

    def _up_to_date(self, connection: Connection) -> Mapping[str, DailySums]:
        models = {row.id: row.model for row in connection.execute(_MODELS)}
        last = connection.scalar(LAST_LINE) or 0
        if last < self._known.last or models != self._known.models:
            self._known = _ModelCache(models=models)
        if last > self._known.last:
            found = list(_newer(connection, self._known.last))
            for model, day, owner, group, new in found:
                self._known.add(model, day, owner, group, new)
            self._known.last = last
        return self._known.sums


def _newer(connection: Connection, after: int) -> Iterator[tuple[str, int, str, str, Sum]]:
    """Sums of the lines after this one, the database's own where they lie within a day."""
    spans, day = spans_midnight(connection), first_day(connection)
    # As columns they would tempt SQLite to go through a whole index that is in their order.
    owner, group = ledger.c.owner.concat(""), ledger.c.group_name.concat("")
    within = (
        select(MODEL, day, owner, group, func.sum(OF_ONE_DEVICE))
        .add_columns(func.min(ledger.c.starts_at), func.max(ledger.c.ends_at))
        .select_from(LINES)
        .where(ledger.c.id > after, ~spans)
        .group_by(MODEL, day, owner, group)
    )
    for model, number, person, name, *new in connection.execute(within):
        yield model, number, person, name, Sum(*new)
    for each in lines(connection, ledger.c.id > after, spans):
        for part in portions(each, EVERYTHING, UsageBy.DAY):
            new_part = Sum(part.charged, part.first, part.last)
            yield each.model, floor(part.first / DAY), each.owner, each.group, new_part
