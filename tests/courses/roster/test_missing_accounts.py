"""Members without an account are named, and get one on demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.courses.roster import missing_accounts
from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.store import Accounts
from carrel.hub.errors import Conflict, Forbidden

from ...hub.doubles import STUDENT1, TEACHER
from ..course_site import GRADER, CourseSite, build_site

ROSTER = "student,role\nstudent1,\nzoe,\nben,\ngus,grader\n"
WITHOUT = ["ben", "gus", "zoe"]


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    accounts = Accounts(tmp_path / "accounts.db", cost=Cost(n=2))
    for name in ("teacher", "student1"):
        accounts.add(name, "a long password", admin=False)
    yield accounts
    accounts.close()


@pytest.fixture
def site(tmp_path: Path, accounts: Accounts) -> CourseSite:
    site = build_site(tmp_path, accounts=accounts)
    site.create(students="student\nstudent1\n")
    return site


def test_a_roster_names_the_users_without_an_account(site: CourseSite) -> None:
    roster = site.services.roster
    for dry_run in (True, False):
        effect = roster.update(TEACHER, "cs101", ROSTER, dry_run=dry_run)
        assert effect.sentences[-1] == "3 users have no account yet: ben, gus, zoe."
    assert roster.members(TEACHER, "cs101").without_account == WITHOUT


def test_missing_accounts_are_created_with_working_passwords(
    site: CourseSite, accounts: Accounts
) -> None:
    site.services.roster.update(TEACHER, "cs101", ROSTER)
    found = site.services.missing_accounts.create(TEACHER, "cs101")
    assert [made.name for made in found.created] == WITHOUT
    assert found.remaining == 0
    for made in found.created:
        account = accounts.sign_in(made.name, made.password)
        assert account is not None
        assert not account.admin
    assert site.services.missing_accounts.create(TEACHER, "cs101").created == []
    assert ("teacher", "account add", "zoe") in site.lines()


def test_a_call_without_time_says_how_many_remain(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.services.roster.update(TEACHER, "cs101", ROSTER)
    monkeypatch.setattr(missing_accounts, "SECONDS_PER_CALL", 0.0)
    found = site.services.missing_accounts.create(TEACHER, "cs101")
    assert (found.created, found.remaining) == ([], 3)


def test_only_teachers_create_accounts(site: CourseSite, accounts: Accounts) -> None:
    site.services.roster.update(TEACHER, "cs101", ROSTER)
    for who in (STUDENT1, GRADER):
        with pytest.raises(Forbidden):
            site.services.missing_accounts.create(who, "cs101")
    assert len(accounts.all()) == 2


def test_accounts_of_another_authenticator_are_not_created(tmp_path: Path) -> None:
    site = build_site(tmp_path)
    site.create(students="student\nstudent1\n")
    assert site.services.roster.members(TEACHER, "cs101").without_account == []
    assert site.services.roster.update(TEACHER, "cs101", ROSTER).sentences[-1].endswith("is new.")
    with pytest.raises(Conflict, match="not Carrel's own"):
        site.services.missing_accounts.create(TEACHER, "cs101")
