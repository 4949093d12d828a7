"""Contract of the store: schedules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import NotFound, OverMaximum
from carrel.hub.interfaces.store import Store
from carrel.hub.records.schedules import Schedule, ScheduleState

from .store_kit import schedule


def test_schedules_are_stored_changed_and_removed(store: Store) -> None:
    first, second, other = schedule("b"), schedule("a"), schedule("c", "bob")
    for each in (first, second, other):
        assert store.add_schedule(each, f'{{"job": "{each.id}"}}', most=5) == each
    assert store.schedules("ada") == (first, second)
    assert store.schedule("c-c") == other
    assert store.schedule_job("c-c") == '{"job": "c-c"}'

    changed = replace(
        first,
        state=ScheduleState.PAUSED,
        paused_why="Refused.",
        paused_at=101.5,
        next_at=None,
        last_due=100.0,
        last_request="j-1",
        last_error="No.",
        missed=3,
        refusals=5,
    )
    assert store.update_schedule("c-b", lambda found: changed) == changed
    assert store.schedules("ada") == (changed, second)
    assert store.schedule_job("c-b") == '{"job": "c-b"}'

    assert store.remove_schedule("c-b")
    assert not store.remove_schedule("c-b")
    assert store.remove_schedules_of("ada") == 1
    assert (store.schedules("ada"), store.schedules("bob")) == ((), (other,))


def test_schedules_of_a_course_are_those_of_all_owners_and_stay(store: Store) -> None:
    mine = replace(schedule("a"), course="cs101")
    theirs = replace(schedule("b", "bob"), course="cs101")
    for each in (mine, schedule("c"), theirs, replace(schedule("d"), course="cs102")):
        store.add_schedule(each, "{}", most=5)
    assert store.schedules_of_course("cs101") == (mine, theirs)
    assert store.remove_schedules_of("ada") == 1
    assert store.schedules_of_course("cs101") == (mine, theirs)


def test_a_missing_schedule_is_not_found(store: Store) -> None:
    for call in (
        lambda: store.schedule("c-x"),
        lambda: store.schedule_job("c-x"),
        lambda: store.update_schedule("c-x", lambda found: found),
    ):
        with pytest.raises(NotFound, match="no schedule 'c-x'"):
            call()


def test_due_schedules_are_those_whose_time_has_come(store: Store) -> None:
    late, early = schedule("late", next_at=90.0), schedule("early", next_at=80.0)
    for each in (late, early, schedule("coming", next_at=101.0), schedule("paused", next_at=None)):
        store.add_schedule(each, "{}", most=5)
    assert store.due_schedules(100.0) == (early, late)
    assert store.due_schedules(79.9) == ()


def test_the_same_key_returns_the_first_schedule(store: Store) -> None:
    first = store.add_schedule(schedule("a"), "{}", most=1)
    assert store.add_schedule(replace(schedule("a"), id="c-new"), "[]", most=1) == first
    other = replace(schedule("a", "bob"), id="c-bob")
    assert store.add_schedule(other, "{}", most=1) == other


def test_a_user_has_at_most_so_many(store: Store) -> None:
    store.add_schedule(schedule("a"), "{}", most=1)
    with pytest.raises(OverMaximum, match="You have 1 schedule"):
        store.add_schedule(schedule("b"), "{}", most=1)
    store.add_schedule(schedule("c", "bob"), "{}", most=1)
    assert [each.id for each in store.schedules("ada")] == ["c-a"]


def test_a_change_that_fails_changes_nothing(store: Store) -> None:
    first = store.add_schedule(schedule("a"), "{}", most=1)

    def fails(found: Schedule) -> Schedule:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.update_schedule("c-a", fails)
    assert store.schedule("c-a") == first
