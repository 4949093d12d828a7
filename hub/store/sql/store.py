"""``SqlStore``: the SQL implementation of the store; every method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec

from sqlalchemy import Connection, delete, select

from ...interfaces.run_times import CellTimes, ForecastOutcome, RunTimeForecast
from ...records.audit import AuditEntry, ChangeFilter
from ...records.clock import ClockOffset
from ...records.events import ChangeDigest, EventRecord, NewEvent
from ...records.identity import ProgramCharge
from ...records.leases import LeaseRecord
from ...records.ledger import LedgerEntry, Usage
from ...records.requests import NewRequest, RequestFilter, RequestRecord
from ...records.usage import (
    Capacity,
    Census,
    Granted,
    LedgerFilter,
    Levels,
    UsageBy,
    UsageRow,
    UsedRequests,
    Window,
)
from ...scheduling.model.plan import Estimate, Start
from ...scheduling.model.snapshot import (
    Allocation,
    BudgetBalance,
    Device,
    Group,
    Health,
    Mark,
    MarkKind,
    PendingRequest,
    Snapshot,
)
from ...scheduling.quota.accounting import HALF_LIFE
from ...transitions.transition import Transition
from ...usage.rollup import MADE_OF, regrouped
from . import calendar, change_digest, marks_and_audit, mutations, pool, queries, service_clock
from .announcements import SqlAnnouncements
from .calendar import SqlCalendar
from .gallery import SqlGallery
from .image_pins import SqlImagePins
from .programs import SqlPrograms
from .queue import Queue
from .request_search import RequestSearch
from .schedules import SqlSchedules
from .secrets import SqlSecrets
from .tables.notifications import (
    notification_channels,
    notification_choices,
    notification_outbox,
)
from .tables.pool_rows import read_devices, read_groups, read_marks
from .tables.request_rows import read_charged, read_ledger
from .transactions import Transactions
from .usage import forecasts, history, pool_levels
from .usage.decayed_usage import DecayedUsageSums
from .usage.ledger_sums import LedgerSums
from .usage.model_sums import ModelSums
from .utilization import SqlUtilization

P = ParamSpec("P")


class SqlStore(
    SqlAnnouncements,
    SqlCalendar,
    SqlGallery,
    SqlImagePins,
    SqlPrograms,
    SqlSchedules,
    SqlSecrets,
    SqlUtilization,
):
    """Implements ``hub.interfaces.store.Store`` on a database; created by ``open_store``.

    Safe to use from any thread. Several processes may open the same database.
    """

    def __init__(self, transactions: Transactions, *, half_life: float = HALF_LIFE) -> None:
        super().__init__(transactions)
        # The course store uses the same database.
        self.transactions = transactions
        self._read = transactions.read
        self._read_once = transactions.read_once
        self._write = transactions.write
        self._close = transactions.close
        self.together = transactions.together
        self._search = RequestSearch()
        self._queue = Queue()
        self._use = DecayedUsageSums(half_life)
        self._budgets = calendar.SqlBudgets()
        self._sums = LedgerSums()
        self._model_sums = ModelSums()

    # -- the pool and the quota tree ------------------------------------------------------

    def put_group(self, group: Group, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            pool.put_group(connection, group)
            marks_and_audit.record_change(connection, change)

        self._write(work)

    def remove_group(self, name: str, *, at: float, change: AuditEntry | None = None) -> None:
        self._write(lambda c: marks_and_audit.remove_group(c, name, change, at=at))

    def remove_notification_channels_of(self, owner: str) -> int:
        def work(connection: Connection) -> int:
            own = select(notification_channels.c.id).where(notification_channels.c.owner == owner)
            for table in (notification_outbox, notification_choices):
                connection.execute(delete(table).where(table.c.channel.in_(own)))
            channels = delete(notification_channels)
            found = connection.execute(channels.where(notification_channels.c.owner == owner))
            return int(found.rowcount)

        return self._write(work)

    def group(self, name: str) -> Group:
        return self._read(lambda c: pool.group(c, name))

    def groups(self) -> tuple[Group, ...]:
        return tuple(self._read_once("groups", read_groups).values())

    def set_teachers(
        self, group: str, teachers: Sequence[str], *, change: AuditEntry | None = None
    ) -> None:
        def work(connection: Connection) -> None:
            pool.set_teachers(connection, group, teachers)
            marks_and_audit.record_change(connection, change)

        self._write(work)

    def teachers(self, group: str) -> tuple[str, ...]:
        return self._read(lambda c: pool.teachers(c, group))

    def taught_by(self, person: str) -> frozenset[str]:
        return self._read_once(("taught by", person), lambda c: pool.taught_by(c, person))

    def sync_devices(self, node: str, devices: Sequence[Device]) -> None:
        self._write(lambda c: pool.sync_devices(c, node, devices))

    def remove_node(self, name: str, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            pool.remove_node(connection, name)
            marks_and_audit.record_change(connection, change)

        self._write(work)

    def set_health(self, device_id: str, health: Health, why: str) -> None:
        self._write(lambda c: pool.set_health(c, device_id, health, why))

    def devices(self) -> tuple[Device, ...]:
        def work(connection: Connection) -> tuple[Device, ...]:
            return tuple(read_devices(connection, read_marks(connection)).values())

        return self._read_once("devices", work)

    def nodes(self) -> tuple[str, ...]:
        return self._read(marks_and_audit.node_names)

    def marks(self) -> tuple[Mark, ...]:
        return self._read_once("marks", read_marks)

    def put_mark(self, mark: Mark, *, change: AuditEntry | None = None) -> None:
        self._write(lambda c: marks_and_audit.put_mark(c, mark, change))

    def remove_mark(self, target: str, kind: MarkKind, *, change: AuditEntry | None = None) -> bool:
        return self._write(lambda c: marks_and_audit.remove_mark(c, target, kind, change))

    # -- audit log ------------------------------------------------------------------------

    def add_change(self, change: AuditEntry) -> None:
        self._write(lambda c: marks_and_audit.add_entry(c, change))

    def check_unchanged(self, change: AuditEntry) -> None:
        self._read(lambda c: marks_and_audit.check_unchanged(c, change))

    def changes(self, which: ChangeFilter) -> tuple[AuditEntry, ...]:
        return self._read(lambda c: marks_and_audit.find_changes(c, which))

    # -- requests -------------------------------------------------------------------------

    def submit(
        self,
        new: NewRequest,
        now: float,
        *,
        charge: ProgramCharge | None = None,
        secrets: Sequence[str] = (),
    ) -> RequestRecord:
        return self._write(lambda c: mutations.submit(c, new, now, charge, secrets))

    def request(self, request_id: str) -> RequestRecord:
        return self._read(lambda c: queries.request(c, request_id))

    def requests(self, which: RequestFilter) -> tuple[RequestRecord, ...]:
        return self._read(lambda c: self._search.find(c, which))

    def live_session(self, owner: str, server_name: str) -> RequestRecord | None:
        return self._read(lambda c: queries.live_session(c, owner, server_name))

    def queued(self, owner: str) -> frozenset[str]:
        return frozenset(request.id for request in self._pending() if request.owner == owner)

    def snapshot(self, now: float) -> Snapshot:
        parts = self._queue, self._use, self._budgets
        return self._read(lambda c: queries.snapshot(c, *parts, now))

    def budgets(self, now: float) -> tuple[BudgetBalance, ...]:
        with self.together():
            groups = self.groups()
            return self._read(lambda c: self._budgets.read(c, groups, now))

    def allocations(self) -> tuple[Allocation, ...]:
        return self._read(queries.allocations)

    def waiting_for_devices(self) -> int:
        return sum(request.devices > 0 for request in self._pending())

    # -- transitions of the lifecycle -----------------------------------------------------

    def grant(
        self, starts: Sequence[Start], *, now: float, lease_seconds: float
    ) -> tuple[LeaseRecord, ...]:
        until = now + lease_seconds
        return self._write(lambda c: mutations.grant(c, starts, now=now, until=until))

    def launch(self, lease_id: str, *, now: float, token_hash: str = "") -> RequestRecord:
        return self._write(lambda c: mutations.launch(c, lease_id, now=now, token_hash=token_hash))

    def apply(
        self,
        request_id: str,
        transition: Callable[Concatenate[RequestRecord, P], Transition],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> RequestRecord:
        def work(connection: Connection) -> RequestRecord:
            before = queries.request(connection, request_id)
            step = transition(before, *args, **kwargs)
            return mutations.store_transition(connection, before, step)

        return self._write(work)

    def apply_to_lease(
        self,
        lease_id: str,
        transition: Callable[Concatenate[RequestRecord, str, P], Transition],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> RequestRecord:
        def work(connection: Connection) -> RequestRecord:
            before = queries.request_of_lease(connection, lease_id)
            step = transition(before, lease_id, *args, **kwargs)
            return mutations.store_transition(connection, before, step)

        return self._write(work)

    # -- changes by the owner -------------------------------------------------------------

    def keep_place(
        self, request_id: str, server_name: str, *, now: float, desk: NewRequest | None = None
    ) -> RequestRecord:
        return self._write(
            lambda c: mutations.keep_place(c, request_id, server_name, now=now, desk=desk)
        )

    # -- leases, events, ledger -----------------------------------------------------------

    def leases(self) -> tuple[LeaseRecord, ...]:
        return self._read(queries.live_leases)

    def lease(self, lease_id: str) -> LeaseRecord:
        return self._read(lambda c: queries.lease(c, lease_id))

    def lease_of_token(self, token_hash: str) -> LeaseRecord:
        return self._read(lambda c: queries.lease_of_token(c, token_hash))

    def postpone(self, starts: Mapping[str, float], *, until: float) -> None:
        self._write(lambda c: mutations.postpone(c, starts, until=until))

    def renew(self, signs: Mapping[str, float], *, until: float) -> None:
        self._write(lambda c: mutations.renew(c, signs, until=until))

    def suspect(self, lease_ids: Sequence[str]) -> None:
        self._write(lambda c: mutations.suspect(c, lease_ids))

    def charge(self, lease_ids: Sequence[str], *, now: float) -> None:
        self._write(lambda c: mutations.charge(c, lease_ids, now=now))

    def clock_offset(self) -> ClockOffset | None:
        return self._read(service_clock.offset)

    def keep_clock_offset(self, offset: ClockOffset) -> None:
        self._write(lambda c: service_clock.keep_offset(c, offset))

    def move_times(self, step: float, offset: ClockOffset) -> None:
        self._write(lambda c: service_clock.move_times(c, step, offset))

    def add_events(self, lease_id: str, events: Sequence[NewEvent]) -> tuple[EventRecord, ...]:
        return self._write(lambda c: mutations.add_events(c, lease_id, events))

    def events(
        self,
        request_id: str,
        *,
        after: int = 0,
        limit: int = 1000,
        kinds: frozenset[str] | None = None,
    ) -> tuple[EventRecord, ...]:
        return self._read(
            lambda c: queries.find_events(c, request_id, after=after, limit=limit, kinds=kinds)
        )

    def usage(self, *, now: float, owner: str | None = None) -> tuple[Usage, ...]:
        return self._read(lambda c: queries.usage(c, self._sums, now=now, owner=owner))

    def ledger(
        self, *, owner: str | None = None, request_id: str | None = None
    ) -> tuple[LedgerEntry, ...]:
        return self._read(lambda c: read_ledger(c, owner, request_id))

    def charged(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        return self._read(lambda c: read_charged(c, request_ids))

    # -- history --------------------------------------------------------------------------

    def used(self, which: LedgerFilter, by: UsageBy, *, now: float) -> tuple[UsageRow, ...]:
        sums, made_of = (self._sums, self._model_sums), MADE_OF.get(by, by)
        with self.together():
            rows = self._read(lambda c: history.used(c, *sums, which, made_of, now=now))
            return regrouped(rows, which, by, groups=self.groups, terms=self.terms)

    def used_requests(
        self, which: LedgerFilter, *, now: float, most: int, counted: bool = True
    ) -> UsedRequests:
        return self._read(
            lambda c: history.used_requests(c, which, now=now, most=most, counted=counted)
        )

    def ledger_lines(
        self, which: LedgerFilter, *, limit: int, before: int | None = None
    ) -> tuple[LedgerEntry, ...]:
        return self._read(lambda c: history.ledger_lines(c, which, limit=limit, before=before))

    def granted(self, window: Window) -> tuple[Granted, ...]:
        return self._read(lambda c: pool_levels.granted(c, window))

    def levels(self, window: Window) -> Levels:
        return self._read(lambda c: pool_levels.levels(c, window))

    def note_capacity(self, now: float) -> None:
        self._write(lambda c: pool_levels.note_capacity(c, now))

    def capacity(self, until: float) -> tuple[Capacity, ...]:
        return self._read(lambda c: pool_levels.read_capacity(c, until))

    def census(self) -> Census:
        return self._read(history.census)

    def check(self) -> None:
        self._read(lambda c: c.scalar(select(1)))

    def change_digest(self, after: int | None) -> ChangeDigest:
        return self._read(lambda c: change_digest.read_digest(c, after, self._queue))

    def close(self) -> None:
        self._close()

    def _pending(self) -> tuple[PendingRequest, ...]:
        return self._read_once("pending", self._queue.read)

    # -- forecasts ------------------------------------------------------------------------

    def put_run_time_forecasts(self, found: Mapping[str, RunTimeForecast], *, now: float) -> None:
        self._write(lambda c: forecasts.put_run_times(c, found, now))

    def put_wait_forecasts(self, found: Mapping[str, Estimate], *, now: float) -> None:
        self._write(lambda c: forecasts.put_waits(c, found, now))

    def run_time_outcomes(self, *, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
        return self._read(lambda c: forecasts.run_time_outcomes(c, since, limit))

    def wait_outcomes(self, *, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
        return self._read(lambda c: forecasts.wait_outcomes(c, since, limit))

    def put_cell_times(self, found: Sequence[CellTimes]) -> None:
        if found:
            self._write(lambda c: forecasts.put_cell_times(c, found))

    def cell_times(self) -> tuple[CellTimes, ...]:
        return self._read(forecasts.read_cell_times)
