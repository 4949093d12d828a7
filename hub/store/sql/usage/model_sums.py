"""Sums of the ledger by device model: the devices of a lease share its lines equally.

A line has the number of devices; the lease has their ids, and the devices have their models. The
usage of a device that is no longer in the pool has an empty model.
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
PER_DEVICE = ledger.c.device_seconds / ledger.c.devices
DEVICE_LINES = ledger.join(lease_devices, lease_devices.c.lease_id == ledger.c.lease_id).outerjoin(
    devices, devices.c.id == lease_devices.c.device_id
)
"""One row per ledger line and device of its lease."""

# One row per leased device, of all owners.
OPEN_DEVICES = (
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


def lines_by_device(
    connection: Connection, *conditions: ColumnElement[bool]
) -> Iterator[UsageInterval]:
    """Yield the matching lines, one interval for every device of the lease."""
    query = select(ledger, MODEL).select_from(DEVICE_LINES).where(*conditions)
    rows = connection.execute(query).all()
    for row, line in zip(rows, to_ledger(rows), strict=True):
        yield of_one_device(charged(line), line.devices, row.model)


@dataclass(slots=True)
class _ModelCache:
    """The sums of the lines up to the id ``last`` by model.

    Attributes:
        models: by device id; the sums are valid as long as the devices have these models.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    last: int = 0
    sums: dict[str, DailySums] = field(default_factory=dict)

    def add(self, model: str, day: int, owner: str, group: str, new: Sum) -> None:
        self.sums.setdefault(model, DailySums()).add(day, owner, group, new)


class ModelSums:
    """Cached sums as in ``LedgerSums``, by model; rebuilt when the devices of the pool change."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known = _ModelCache()

    def used(
        self, connection: Connection, which: LedgerFilter, days: range | None, by: UsageBy
    ) -> list[UsageRow]:
        """Return the usage of these days by model, or by owner, group and model.

        None means every day.
        """
        totals: dict[tuple[str, str, str], Sum] = {}
        with self._lock:
            for model, sums in self._up_to_date(connection).items():
                for _, owner, group, part in sums.matching(which, days):
                    key = ("", "", model) if by is UsageBy.MODEL else (owner, group, model)
                    totals.setdefault(key, Sum()).add(part)
        return [
            UsageRow(
                owner=owner,
                group=group,
                model=model,
                charged=total.charged,
                first=total.first,
                last=total.last,
            )
            for (owner, group, model), total in totals.items()
        ]

    def _up_to_date(self, connection: Connection) -> Mapping[str, DailySums]:
        models = {row.id: row.model for row in connection.execute(_MODELS)}
        last = connection.scalar(LAST_LINE) or 0
        if last < self._known.last or models != self._known.models:
            self._known = _ModelCache(models=models)
        if last > self._known.last:
            newer = list(_newer(connection, self._known.last))
            for model, day, owner, group, new in newer:
                self._known.add(model, day, owner, group, new)
            self._known.last = last
        return self._known.sums


def _newer(connection: Connection, after: int) -> Iterator[tuple[str, int, str, str, Sum]]:
    """Yield the sums of the lines with a greater id.

    The database adds up lines within one day; lines that span midnight are split here.
    """
    spans, day = spans_midnight(connection), first_day(connection)
    # Expressions, because for plain columns SQLite scans a whole index in their order.
    owner, group = ledger.c.owner.concat(""), ledger.c.group_name.concat("")
    within = (
        select(MODEL, day, owner, group, func.sum(PER_DEVICE))
        .add_columns(func.min(ledger.c.starts_at), func.max(ledger.c.ends_at))
        .select_from(DEVICE_LINES)
        .where(ledger.c.id > after, ~spans)
        .group_by(MODEL, day, owner, group)
    )
    for model, number, person, name, *new in connection.execute(within):
        yield model, number, person, name, Sum(*new)
    for line in lines_by_device(connection, ledger.c.id > after, spans):
        for part in portions(line, EVERYTHING, UsageBy.DAY):
            new_part = Sum(part.charged, part.first, part.last)
            yield line.model, floor(part.first / DAY), line.owner, line.group, new_part
