"""One rule for the names of users, in accounts, rosters, groups and forms."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyterhub.auth import Authenticator

from carrel.courses.roster.csv_import import read_roster
from carrel.hub.accounts import Accounts
from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.usernames import is_valid, normalise, parse_name, split_names
from carrel.hub.errors import InvalidInput
from carrel.hub.files.filenames import safe_name
from carrel.hub.web.forms.course import names

FROM_ELSEWHERE = [
    *("a+b@x.edu", "o'brien", "_x", "ünal", "ada", "a..b", "ada-", "ada lovelace", "a#1"),
    *("dom\\ada", "auth0|5f7", "علی", "วิชัย", "王小明", "x" * 200, "%7eada"),
]
REFUSED = [
    *(
        "",
        ".",
        "..",
        "...",
        "../ada",
        "a/b",
        "-ada",
        ".ada",
        "a,b",
        "!",
        "a*",
        "a?",
        "[a]",
        "ada\n\nx",
    ),
    *("a\u202eda", "a\u200da", "\u0301a", "x" * 201, "ü" * 101, "\ud800", "a\u2028b"),
]


@pytest.mark.parametrize("name", FROM_ELSEWHERE)
def test_names_of_other_sign_in_systems_are_taken_everywhere(name: str, tmp_path: Path) -> None:
    assert parse_name(name) == name
    assert Authenticator().validate_username(name)
    assert names(f"{name.upper()}, ben") == [name, "ben"]
    assert read_roster(f'student\n"{name}"\n')[0].person == name
    accounts = Accounts(tmp_path / "accounts.db", cost=Cost(n=2))
    accounts.add(name, "a long password", admin=False)
    assert accounts.sign_in(name.upper(), "a long password") == accounts.find(name)
    accounts.close()


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_cannot_be_told_apart_or_named_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid username"):
        parse_name(name)


@given(st.text(max_size=12))
def test_what_is_valid_jupyterhub_takes_and_it_has_one_spelling(text: str) -> None:
    name = normalise(text)
    if is_valid(name):
        assert Authenticator().validate_username(name)
        assert normalise(unicodedata.normalize("NFD", name)) == name
        assert normalise(name) == name
        assert safe_name(name).isascii()


def test_the_roster_of_other_sign_in_systems() -> None:
    """``roster-names.csv`` of the collected cases."""
    text = "name,section\nstudent+a@x.example,A\no'student,A\n_student,B\nstüdent,B\n"
    found = [row.person for row in read_roster(text)]
    assert found == ["student+a@x.example", "o'student", "_student", "stüdent"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ada, ben", ["ada", "ben"]),
        ("ada ben\n", ["ada", "ben"]),
        ("ada lovelace, ben,", ["ada lovelace", "ben"]),
        ("ada lovelace,", ["ada lovelace"]),
        (" , ", []),
        ("", []),
    ],
)
def test_lists_of_names(text: str, found: list[str]) -> None:
    assert split_names(text) == found
