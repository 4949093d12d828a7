"""Accounts from a table: what a preview says, and that saving can be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.store import Accounts
from carrel.hub.errors import InvalidInput, TooLarge, Unavailable
from carrel.hub.groups.people_import import MAX_ROWS, PeopleImport, parse
from carrel.hub.records.audit import ChangeFilter
from carrel.hub.scheduling.model.snapshot import Group

from ...stores import new_store
from ..doubles import Clock, FakeHub

TABLE = """name;groups;role
Zoe;cs101 lab;admin
ben;cs101;

student1;lab;
ada;;
ben;lab;user
n/o;;
kim;cs102;
lee;;boss
,;;
"""


@pytest.fixture
def people(tmp_path: Path) -> Iterator[PeopleImport]:
    accounts = Accounts(tmp_path / "accounts.db", cost=Cost(n=2))
    accounts.add("student1", "a long password", admin=False)
    accounts.add_without_password({"ada": False})
    store = new_store()
    for name in ("cs101", "lab"):
        store.put_group(Group(name=name))
    yield PeopleImport(store, Clock(), FakeHub(), accounts)
    accounts.close()


def test_a_preview_says_what_is_new_what_exists_and_what_is_wrong(people: PeopleImport) -> None:
    rows = [(row.line, row.name, row.status, row.note) for row in people.preview(TABLE).rows]
    assert rows == [
        (2, "zoe", "new", ""),
        (3, "ben", "new", ""),
        (5, "student1", "exists", "joins lab."),
        (6, "ada", "exists", "has no password yet and gets a new link."),
        (7, "ben", "wrong", "ben is also in line 3."),
        (8, "n/o", "wrong", "'n/o' is not a valid username."),
        (9, "kim", "wrong", "There is no group cs102."),
        (10, "lee", "wrong", "'boss' is not a role: user or admin."),
        (11, ",", "wrong", "',' is not a valid username."),
    ]
    assert people.accounts.find("zoe") is None
    assert people.store.changes(ChangeFilter()) == ()


def test_saving_creates_the_good_rows_and_can_be_repeated(people: PeopleImport) -> None:
    done = people.save(TABLE, who="admin")
    assert sorted(link.name for link in done.links) == ["ada", "ben", "zoe"]
    zoe = people.accounts.find("zoe")
    assert zoe is not None
    assert (zoe.admin, zoe.password_at) == (True, 0.0)
    assert people.accounts.find("kim") is None
    assert people.hub.user("zoe").groups == {"cs101", "lab"}
    assert people.hub.user("student1").groups == {"cs101", "lab"}

    codes = {link.name: link.code for link in done.links}
    assert people.accounts.use_link(codes["zoe"], "my own password") == "zoe"
    again = people.save(TABLE, who="admin")
    assert sorted(link.name for link in again.links) == ["ada", "ben"]
    assert people.accounts.sign_in("zoe", "my own password") is not None
    assert people.preview("name,groups\nzoe,lab\n").changes is False


def test_nothing_is_created_while_jupyterhub_does_not_answer(people: PeopleImport) -> None:
    assert isinstance(people.hub, FakeHub)
    people.hub.away = True
    with pytest.raises(Unavailable):
        people.save(TABLE, who="admin")
    assert people.accounts.find("zoe") is None


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", "The table is empty."),
        ("name,mail\nada,a@b\n", "a column 'mail', which is not known"),
        ("groups,role\ncs101,user\n", "names no column 'name'"),
        ("name,name\nada,ada\n", "a column twice"),
        ("name\n", "a heading and no rows"),
        ('name\n"ada\n', "Line 2 of the table cannot be read"),
    ],
)
def test_a_table_with_wrong_columns_is_refused_as_a_whole(table: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=r"column|table") as refused:
        parse(table, set())
    assert says in refused.value.message
    assert "'groups' (separated by spaces)" in refused.value.accepted


def test_a_table_has_at_most_500_rows() -> None:
    rows = "".join(f"user{number}\n" for number in range(MAX_ROWS + 1))
    with pytest.raises(TooLarge):
        parse(f"name\n{rows}", set())
