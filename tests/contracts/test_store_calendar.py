"""Contract of the store: terms, budgets, reservations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from functools import partial

import pytest

from carrel.hub.admission.policy import admit
from carrel.hub.errors import InvalidInput, NotFound, OverMaximum
from carrel.hub.interfaces.store import Store
from carrel.hub.records.audit import AuditAction, AuditEntry, ChangeFilter
from carrel.hub.records.calendar import Reservation, Term
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import Budget, BudgetBalance, Group, Period, ReservedSpan
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from .store_kit import LAB, job, running

WINTER = Term(name="winter", first=date(2026, 10, 12), last=date(2027, 2, 15))
SUMMER = Term(name="summer", first=date(2027, 4, 12), last=date(2027, 7, 16))
LOST = Cause(code=CauseCode.LOST, message="Gone.")
CLASS = Reservation(
    id="r-1",
    group="lab",
    devices=2,
    weekdays=(1,),
    begins=time(10),
    ends=time(12),
    zone="Europe/Berlin",
    first=date(2026, 11, 1),
    last=date(2027, 2, 15),
    why="The lab class.",
)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def change(action: AuditAction, target: str) -> AuditEntry:
    return AuditEntry(at=1.0, who="admin", action=action, target=target)


class TestTerms:
    def test_terms_are_sorted_and_removed(self, store: Store) -> None:
        store.put_term(SUMMER)
        store.put_term(WINTER, change=change(AuditAction.TERM_SET, "winter"))
        assert store.terms() == (WINTER, SUMMER)
        longer = replace(WINTER, last=date(2027, 2, 28))
        store.put_term(longer)
        assert store.terms() == (longer, SUMMER)
        assert store.remove_term("winter", change=change(AuditAction.TERM_REMOVE, "winter"))
        assert not store.remove_term("winter", change=change(AuditAction.TERM_REMOVE, "winter"))
        assert store.terms() == (SUMMER,)
        lines = [line.action for line in store.changes(ChangeFilter(target="winter"))]
        assert lines == [AuditAction.TERM_REMOVE, AuditAction.TERM_SET]

    def test_an_overlapping_or_reversed_term_is_refused(self, store: Store) -> None:
        store.put_term(WINTER)
        with pytest.raises(InvalidInput, match="overlaps winter"):
            store.put_term(replace(SUMMER, first=WINTER.last))
        with pytest.raises(InvalidInput, match="ends before"):
            store.put_term(replace(SUMMER, last=date(2027, 4, 1)))
        assert store.terms() == (WINTER,)


def budget(hours: float, period: Period) -> Budget:
    return Budget(device_seconds=hours * 3600, period=period)


class TestBudgets:
    def test_a_budget_is_stored_with_all_fields(self, store: Store) -> None:
        group = replace(LAB, budget=budget(300, Period.TERM))
        store.put_group(group)
        assert store.group("lab") == group
        with pytest.raises(InvalidInput, match=r"budget .* out of range"):
            store.put_group(replace(LAB, budget=budget(-1, Period.WEEK)))

    def test_a_weekly_budget_counts_subgroups_from_monday(self, store: Store) -> None:
        store.put_group(replace(LAB, budget=budget(2, Period.WEEK)))
        store.put_group(Group(name="cs101", parent="lab", max_devices=2, max_devices_per_user=2))
        monday = at("2026-11-16T00:00")
        before = running(store, job("a"), "D0", at=monday - 600)
        store.apply_to_lease(
            before.id, lifecycle.lose, LOST, now=monday + 300, charge_until=monday + 300
        )
        below = running(store, replace(job("b"), group="cs101"), "D0", at=monday + 400)
        store.apply_to_lease(
            below.id, lifecycle.lose, LOST, now=monday + 500, charge_until=monday + 500
        )
        goes_on = running(store, job("c", devices=2), "D0", "D1", at=monday + 1000)
        store.renew({goes_on.id: monday + 1060}, until=monday + 1090)
        store.charge([goes_on.id], now=monday + 1060)
        # 300 s of the first, 100 s of a subgroup, 60 s of two devices; 540 s of two are to come.
        expected = BudgetBalance(
            group="lab", budget=7200, used=520, running=1080, refills_at=monday + 7 * 86400
        )
        assert store.snapshot(monday + 1070).budgets == (expected,)
        assert store.snapshot(monday + 1071).budgets == (expected,)
        (next_week,) = store.snapshot(monday + 8 * 86400).budgets
        assert next_week.used == 0

    def test_each_term_has_a_budget_and_between_terms_there_is_none(self, store: Store) -> None:
        store.put_group(replace(LAB, budget=budget(300, Period.TERM)))
        store.put_term(WINTER)
        first = at("2026-10-12T00:00")
        lease = running(store, job("a"), "D0", at=first - 60)
        store.apply_to_lease(
            lease.id, lifecycle.lose, LOST, now=first + 60, charge_until=first + 60
        )
        assert store.snapshot(first + 100).budgets == (
            BudgetBalance(group="lab", budget=300 * 3600, used=60),
        )
        store.put_term(SUMMER)
        last = at("2027-02-15T23:59:59")
        assert store.snapshot(last).budgets[0].budget == 300 * 3600
        between = BudgetBalance(group="lab", budget=0, used=0, refills_at=SUMMER.starts_at)
        assert store.snapshot(last + 1).budgets == (between,)

    def test_cached_budget_sums_equal_new_sums(self, store: Store) -> None:
        """The ledger grows, an entry is credited, and a period ends between two reads."""
        store.put_group(replace(LAB, budget=budget(2, Period.WEEK)))
        monday = at("2026-11-16T00:00")
        first = running(store, job("a"), "D0", at=monday - 600)
        second = running(store, job("b"), "D1", at=monday - 600)
        used = []
        for now in (monday - 300, monday + 60, monday + 120, monday + 180):
            store.renew({first.id: now, second.id: now}, until=now + 30)
            store.charge([first.id, second.id], now=now)
            used.append(store.budgets(now)[0].used)
        assert used == [600, 120, 240, 360]
        store.apply_to_lease(
            first.id, lifecycle.lose, LOST, now=monday + 200, charge_until=monday + 200
        )
        broken = Cause(code=CauseCode.DEVICE_FAULT, message="Xid 48.")
        store.apply(second.request_id, lifecycle.stop, State.FAILED, broken, now=monday + 200)
        store.apply_to_lease(
            second.id, lifecycle.finish, now=monday + 200, charge_until=monday + 200
        )
        (left,) = store.budgets(monday + 200)
        assert (left.used, left.running) == (200, 0)

    def test_a_request_above_the_budget_of_a_period_is_refused(self, store: Store) -> None:
        store.put_group(replace(LAB, budget=budget(1, Period.WEEK)))
        check = partial(admit, store, group="lab", devices=2)
        check(seconds=1800)
        with pytest.raises(OverMaximum, match="lab has a budget of 1") as refused:
            check(seconds=3600)
        assert refused.value.accepted == "Ask for at most 30 minutes, or for at most 1 device."
        monday = at("2026-11-16T00:00")
        lease = running(store, job("a"), "D0", at=monday)
        store.apply_to_lease(
            lease.id, lifecycle.lose, LOST, now=monday + 3600, charge_until=monday + 3600
        )
        store.submit(job("b", devices=2), monday + 3700)
        (wait,) = decide(store.snapshot(monday + 3700), monday + 3700).waits
        assert (wait.reason, wait.detail) == (Reason.BUDGET, "lab")
        next_week = store.budgets(monday + 3700)[0].refills_at
        assert next_week == monday + 7 * 86400
        assert len(decide(store.snapshot(next_week), next_week).starts) == 1


class TestReservations:
    def test_reservations_are_stored_scheduled_and_removed(self, store: Store) -> None:
        store.put_reservation(CLASS, change=change(AuditAction.RESERVE, "lab"))
        assert store.reservations() == (CLASS,)
        seven = at("2026-11-17T07:00")  # eight in Berlin
        assert store.snapshot(seven).reserved == (
            ReservedSpan(
                id="r-1", group="lab", devices=2, starts_at=seven + 7200, ends_at=seven + 14400
            ),
        )
        # Requests that start twelve hours before it cannot overlap it.
        assert store.snapshot(seven - 12 * 3600).reserved == ()
        assert store.snapshot(seven + 14400).reserved == ()
        assert store.remove_reservation("r-1", change=change(AuditAction.UNRESERVE, "lab"))
        assert not store.remove_reservation("r-1", change=change(AuditAction.UNRESERVE, "lab"))
        assert store.reservations() == ()
        lines = [line.action for line in store.changes(ChangeFilter(target="lab"))]
        assert lines == [AuditAction.UNRESERVE, AuditAction.RESERVE]

    def test_an_unknown_group_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFound, match="no group cs999"):
            store.put_reservation(replace(CLASS, group="cs999"))

    def test_reservations_of_a_removed_group_end(self, store: Store) -> None:
        store.put_reservation(CLASS)
        store.remove_group("lab", at=1.0)
        assert store.snapshot(at("2026-11-17T09:30")).reserved == ()
