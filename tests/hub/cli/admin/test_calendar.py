"""What administrators date on a state folder: terms, reservations, budgets, announcements."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.store import open_store

from .invocation import carrel, invoke, refusal

TUESDAYS = ("--when", "Tue 10:00-12:00 Europe/Berlin", "--until", "2099-02-15")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    Settings().save(found)
    monkeypatch.setenv("CARREL_STATE", str(found.root))
    carrel("group", "add", "cs101", "--max-devices", "4")
    return found


def audited(state: StateFolder) -> list[AuditAction]:
    with closing(open_store(state.database)) as store:
        return [line.action for line in store.changes(ChangeFilter())]


def test_terms_are_made_changed_listed_and_removed(state: StateFolder) -> None:
    assert "no term" in carrel("term", "ls")
    carrel("term", "add", "winter", "2026-10-12", "2027-02-15")
    carrel("term", "add", "winter", "2026-10-12", "2027-02-28")
    (row,) = carrel("term", "ls", "--json").splitlines()
    shown = json.loads(row)
    assert (shown["name"], shown["first"], shown["last"]) == ("winter", "2026-10-12", "2027-02-28")
    assert "overlaps winter" in refusal("term", "add", "spring", "2027-02-01", "2027-03-01")
    assert "is not a date" in refusal("term", "add", "spring", "soon", "2027-03-01")
    carrel("term", "rm", "winter")
    assert "There is no term winter" in refusal("term", "rm", "winter")
    assert audited(state)[:3] == [
        AuditAction.TERM_REMOVE,
        AuditAction.TERM_SET,
        AuditAction.TERM_SET,
    ]


def test_a_budget_is_device_hours_in_a_period(state: StateFolder) -> None:
    said = carrel("group", "set", "cs101", "--budget", "300h/term")
    assert "There is no current term" in said
    shown = json.loads(carrel("group", "show", "cs101", "--json"))
    assert shown["budget"] == {"device_seconds": 1_080_000.0, "period": "term"}
    assert "Budget                300h/term" in carrel("group", "show", "cs101")
    carrel("group", "set", "cs101", "--budget", "20h/week")
    carrel("group", "set", "cs101", "--budget", "none")
    assert json.loads(carrel("group", "show", "cs101", "--json"))["budget"] is None
    done = invoke("group", "set", "cs101", "--budget", "300")
    assert done.exit_code == 2
    assert "300h/term or 20h/week" in " ".join(done.output.split())


def test_a_class_is_reserved_listed_and_removed(state: StateFolder) -> None:
    assert carrel("reserve", "ls") == "There are no reservations.\n"
    said = carrel("reserve", "cs101", "--devices", "8", *TUESDAYS, "--why", "The lab class.")
    assert "It reserves 8 devices; the pool has 0." in said
    assert "cs101 may hold 4 devices at one time." in said
    (row,) = carrel("reserve", "ls", "--json").splitlines()
    shown = json.loads(row)
    assert (shown["group"], shown["devices"]) == ("cs101", 8)
    assert shown["when"] == "Tue 10:00-12:00 Europe/Berlin"
    assert shown["ends_at"] - shown["starts_at"] == 7200
    listed = carrel("reserve", "ls").splitlines()
    assert listed[1].split()[:3] == [shown["id"], "cs101", "8"]
    carrel("reserve", "rm", shown["id"])
    assert "no reservation" in refusal("reserve", "rm", shown["id"])
    assert audited(state)[:2] == [AuditAction.UNRESERVE, AuditAction.RESERVE]


def test_a_reservation_has_several_weekdays_in_order(state: StateFolder) -> None:
    when = ("--when", "Thu, monday 10:00-12:00 UTC", "--until", "2099-02-15")
    carrel("reserve", "cs101", "--devices", "1", *when)
    (row,) = carrel("reserve", "ls", "--json").splitlines()
    assert json.loads(row)["when"] == "Mon,Thu 10:00-12:00 UTC"


def test_a_dry_run_reserves_nothing(state: StateFolder) -> None:
    said = carrel("reserve", "cs101", "--devices", "8", *TUESDAYS, "--dry-run")
    assert "Nothing was reserved." in said
    assert carrel("reserve", "ls") == "There are no reservations.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cs999", *TUESDAYS], "no group cs999"),
        (["cs101", "--when", "Tuesdays at ten", "--until", "2099-01-01"], "is not a time"),
        (["cs101", "--when", "Tue 10:00-25:00 UTC", "--until", "2099-01-01"], "is not a time"),
        (["cs101", "--when", "Tue 10:00-12:00 Europe/Atlantis", "--until", "2099-01-01"], "zone"),
        (["cs101", "--when", "Tue 10:00-12:00 ../etc", "--until", "2099-01-01"], "is not a time"),
        (["cs101", "--when", "Tue,Day 10:00-12:00 UTC", "--until", "2099-01-01"], "is not a date"),
        (["cs101", "--when", "Tue 10:00-12:00 UTC"], "needs a last day"),
        (["cs101", "--when", "Tue 10:00-12:00 UTC", "--until", "2020-01-01"], "does not occur"),
        (["cs101", "--when", "2020-01-01 10:00-12:00 UTC"], "does not occur"),
    ],
)
def test_an_impossible_reservation_says_why(
    state: StateFolder, arguments: list[str], said: str
) -> None:
    assert said in refusal("reserve", *arguments, "--devices", "1")
    assert carrel("reserve", "ls") == "There are no reservations.\n"


def test_announcements_are_added_listed_and_removed(state: StateFolder) -> None:
    assert "There are no announcements." in carrel("announce", "ls")
    said = carrel("announce", "All sessions stop.", "--until", "2h", "--level", "warning")
    assert said.startswith("Announced a-")
    carrel("announce", "add", "Later.", "--from", "1d", "--until", "2d")
    rows = [json.loads(row) for row in carrel("announce", "ls", "--json").splitlines()]
    assert [(row["text"], row["level"], row["shown"]) for row in rows] == [
        ("All sessions stop.", "warning", True),
        ("Later.", "info", False),
    ]
    assert "is in the past" in refusal("announce", "Gone.", "--until", "2020-01-01 10:00")
    assert "before it begins" in refusal("announce", "Odd.", "--from", "2d", "--until", "1d")
    assert "501 characters" in refusal("announce", "x" * 501, "--until", "1d")
    carrel("announce", "rm", rows[0]["id"])
    assert "There is no announcement" in refusal("announce", "rm", rows[0]["id"])
    assert audited(state)[:3] == [
        AuditAction.UNANNOUNCE,
        AuditAction.ANNOUNCE,
        AuditAction.ANNOUNCE,
    ]
