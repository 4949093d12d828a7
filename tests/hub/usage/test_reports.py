"""Permissions and contents of usage reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from carrel.hub.errors import Forbidden, InvalidInput, NotFound
from carrel.hub.groups.membership import Membership
from carrel.hub.interfaces.jupyterhub import HubUser
from carrel.hub.records.calendar import Term
from carrel.hub.records.identity import Identity
from carrel.hub.records.usage import UsageBy
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.snapshot import Budget, Group, Period
from carrel.hub.usage.budgets import BudgetQueries
from carrel.hub.usage.reports import UsageQuery, UsageReports
from carrel.spawners.fake import FakeBackend

from ...contracts.store_kit import job, running
from ...stores import new_store
from ..doubles import ADMIN, STRANGER, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build

TINA = replace(TEACHER, name="tina", groups=frozenset())
"""She teaches a department and none of its courses."""


def budgets(context: Context) -> BudgetQueries:
    return BudgetQueries(context.store, context.clock, Membership.of(context))


def reports(context: Context) -> UsageReports:
    return UsageReports(context.store, context.clock, budgets(context))


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """student1 and student2 each use a device of cs101 for 100 s, student1 one of lab too."""
    clock = Clock()
    made = build(new_store(), FakeBackend(clock=clock), FakeHub(), clock, tmp_path, devices=3)
    made.store.put_group(Group(name="lab", max_devices=4, max_devices_per_user=4))
    for number, (owner, group) in enumerate(
        [("student1", "cs101"), ("student2", "cs101"), ("student1", "lab")]
    ):
        new = replace(job(str(number), owner=owner), group=group)
        running(made.store, new, f"SIM-{number}", at=clock.now - 100)
    return made


@pytest.mark.parametrize(
    ("who", "asked", "expected"),
    [
        (STUDENT1, UsageQuery(), {("student1", "cs101"), ("student1", "lab")}),
        (STUDENT1, UsageQuery(group="cs101"), {("student1", "cs101")}),
        (STUDENT1, UsageQuery(mine=False), {("student1", "cs101"), ("student1", "lab")}),
        (TEACHER, UsageQuery(), set()),
        (TEACHER, UsageQuery(group="cs101"), {("student1", "cs101"), ("student2", "cs101")}),
        (TEACHER, UsageQuery(group="lab"), set()),
        (TEACHER, UsageQuery(mine=False), {("student1", "cs101"), ("student2", "cs101")}),
        (ADMIN, UsageQuery(), set()),
        (ADMIN, UsageQuery(group="lab"), {("student1", "lab")}),
        (STRANGER, UsageQuery(group="cs101"), set()),
    ],
)
def test_users_see_their_own_usage_teachers_their_groups_administrators_all(
    context: Context, who: Identity, asked: UsageQuery, expected: set[tuple[str, str]]
) -> None:
    for by in UsageBy:
        found = reports(context).report(who, replace(asked, by=by))
        assert {(line.owner, line.group) for line in found.by_group} == expected
        assert found.device_seconds == 100 * len(expected)
        assert sum(row.charged + row.open for row in found.rows) == found.device_seconds


@pytest.fixture
def department(context: Context) -> Context:
    """cs101 and lab are below cs, which tina teaches; cs itself has no usage."""
    store = context.store
    store.put_group(Group(name="cs", max_devices=9, max_devices_per_user=9))
    for name in ("cs101", "lab"):
        store.put_group(replace(store.group(name), parent="cs"))
    store.set_teachers("cs", ["tina"])
    return context


@pytest.mark.parametrize(
    ("who", "asked", "expected"),
    [
        (ADMIN, UsageQuery(mine=False), [("cs", 300, 0), ("cs101", 200, 200), ("lab", 100, 100)]),
        (ADMIN, UsageQuery(group="cs"), [("cs", 300, 0), ("cs101", 200, 200), ("lab", 100, 100)]),
        (ADMIN, UsageQuery(group="cs101"), [("cs101", 200, 200)]),
        (STUDENT1, UsageQuery(), [("cs", 200, 0), ("cs101", 100, 100), ("lab", 100, 100)]),
        (STUDENT1, UsageQuery(mine=False), [("cs101", 100, 100), ("lab", 100, 100)]),
        (TEACHER, UsageQuery(mine=False), [("cs101", 200, 200)]),
        (TEACHER, UsageQuery(group="cs"), [("cs101", 200, 200)]),
        (TINA, UsageQuery(group="cs"), []),
        (STRANGER, UsageQuery(group="cs"), []),
    ],
)
def test_usage_by_group_includes_the_subgroups_that_the_user_may_see(
    department: Context,
    who: Identity,
    asked: UsageQuery,
    expected: list[tuple[str, float, float]],
) -> None:
    found = reports(department).report(who, replace(asked, by=UsageBy.GROUP))
    assert [(row.group, row.charged + row.open, row.own) for row in found.rows] == expected
    assert sum(row.own or 0.0 for row in found.rows) == found.device_seconds


def test_the_ledger_of_a_group_includes_its_subgroups(department: Context) -> None:
    store, now = department.store, department.clock()
    live = [lease.id for lease in store.leases()]
    store.renew(dict.fromkeys(live, now), until=now + 30)
    store.charge(live, now=now)
    found = reports(department).report(ADMIN, UsageQuery(group="cs"))
    assert {(line.owner, line.group) for line in found.by_group} == {
        ("student1", "cs101"),
        ("student2", "cs101"),
        ("student1", "lab"),
    }
    assert len(found.ledger) == 3


def test_by_user_week_and_term(context: Context) -> None:
    now = datetime.fromtimestamp(context.clock(), UTC).date()
    figures = reports(context)
    asked = UsageQuery(mine=False)

    def rows(by: UsageBy, who: Identity = ADMIN) -> list[tuple[str, float]]:
        found = figures.report(who, replace(asked, by=by)).rows
        return [(row.owner or row.week or row.term, row.charged + row.open) for row in found]

    assert rows(UsageBy.USER) == [("student1", 200), ("student2", 100)]
    assert rows(UsageBy.USER, TEACHER) == [("student1", 100), ("student2", 100)]
    assert rows(UsageBy.USER, STUDENT2) == [("student2", 100)]
    monday = now - timedelta(days=now.weekday())
    assert rows(UsageBy.WEEK) == [(monday.isoformat(), 300)]
    assert rows(UsageBy.TERM) == [("", 300)]
    context.store.put_term(Term(name="winter", first=monday, last=now))
    assert rows(UsageBy.TERM) == [("winter", 300)]


def test_lines_are_the_newest_oldest_first(context: Context) -> None:
    now = context.clock()
    for back in (20, 10, 0):
        live = [lease.id for lease in context.store.leases()]
        context.store.renew(dict.fromkeys(live, now - back), until=now + 30)
        context.store.charge(live, now=now - back)
    mine = reports(context).report(STUDENT2, UsageQuery(lines=2))
    assert [line.ends_at for line in mine.ledger] == [now - 10, now]
    assert not mine.ledger_complete
    older = reports(context).report(STUDENT2, UsageQuery(lines=2, before=mine.ledger[0].id))
    assert [line.ends_at for line in older.ledger] == [now - 20]


def test_a_span_that_ends_before_it_begins_is_refused(context: Context) -> None:
    with pytest.raises(InvalidInput, match="ends before it begins"):
        reports(context).report(STUDENT1, UsageQuery(since=2.0, until=1.0))


def test_an_unknown_group_is_an_error_for_administrators(context: Context) -> None:
    with pytest.raises(NotFound, match=r"cs999.*Groups: cs101, lab"):
        reports(context).report(ADMIN, UsageQuery(group="cs999"))


def test_utilization_is_for_administrators_and_teachers(context: Context) -> None:
    figures, store = reports(context), context.store
    store.note_capacity(context.clock() - 50)
    found = figures.pool(ADMIN, "day")
    assert (len(found.periods), found.waits[0].count) == (24, 3)
    assert found.periods[-1].healthy == 3
    course = figures.pool(TEACHER, "day", "cs101")
    assert course.waits[0].count == 2
    assert course.periods[-1].leased == pytest.approx(found.periods[-1].leased * 2 / 3)
    with pytest.raises(Forbidden):
        figures.pool(TEACHER, "day")
    for who, group in ((TEACHER, "lab"), (STUDENT1, "cs101"), (ADMIN, "cs999")):
        with pytest.raises(NotFound, match="that you teach"):
            figures.pool(who, "day", group)
    with pytest.raises(InvalidInput, match="One of: day, week, term"):
        figures.pool(ADMIN, "year")


def test_budgets_are_those_of_the_users_groups(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = context.store.group("cs101")
    budget = Budget(device_seconds=36000, period=Period.WEEK)
    context.store.put_group(replace(group, budget=budget))

    def no_call_to_the_hub(name: str) -> HubUser:
        raise AssertionError(f"the hub is asked for {name} within a transaction")

    ask = context.hub.user

    @contextmanager
    def together() -> Iterator[None]:
        with monkeypatch.context() as within:
            within.setattr(context.hub, "user", no_call_to_the_hub)
            yield

    monkeypatch.setattr(context.store, "together", together)
    assert context.hub.user == ask
    for who, named, known, expected in (
        (STUDENT1, "", None, ["cs101"]),
        (STUDENT1, "", ["lab"], []),
        (TEACHER, "cs101", (), ["cs101"]),
        (STRANGER, "", None, []),
        (ADMIN, "", None, ["cs101"]),
    ):
        found = budgets(context).budgets(who, named, groups_of=known)
        assert [each.group for each in found] == expected, (who.name, named, known)
    assert reports(context).report(STUDENT1, UsageQuery()).budgets


def test_left_out_rows_need_not_be_counted(context: Context) -> None:
    asked = UsageQuery(by=UsageBy.REQUEST, mine=False, rows=1)
    for counted, expected in ((True, 2), (False, 1)):
        found = reports(context).report(ADMIN, replace(asked, counted=counted))
        assert (len(found.rows), found.rows_left_out) == (1, expected)
    every = reports(context).report(ADMIN, replace(asked, counted=False, rows=3))
    assert (len(every.rows), every.rows_left_out) == (3, 0)
