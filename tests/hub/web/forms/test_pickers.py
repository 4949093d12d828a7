"""Fields of one value are one text, and the text is shown in the fields again."""

from __future__ import annotations

import pytest

from carrel.hub.accounts.usernames import split_names
from carrel.hub.web.forms import pickers


@pytest.mark.parametrize(
    ("typed", "unit", "text", "again"),
    [
        ("2", "h", "2h", ("2", "h")),
        ("90", "m", "90m", ("90", "m")),
        ("120", "m", "120m", ("2", "h")),
        ("1.5", "h", "5400s", ("90", "m")),
        ("0,5", "d", "43200s", ("12", "h")),
        ("0", "m", "0", ("0", "h")),
        ("1h30m", "d", "1h30m", ("90", "m")),
        ("1:30:00", "d", "1:30:00", ("90", "m")),
        ("45s", "h", "45s", ("45", "s")),
        ("", "m", "", ("", "h")),
        ("soon", "d", "soon d", ("soon", "d")),
        ("-1", "m", "-1 m", ("-1", "m")),
        ("9" * 400 + ".5", "d", "9" * 400 + ".5 d", ("9" * 400 + ".5", "d")),
        ("2", "years", "2", ("2", "m")),
        ("2", "", "2", ("2", "m")),
    ],
)
def test_a_duration(typed: str, unit: str, text: str, again: tuple[str, str]) -> None:
    assert pickers.span({"time": typed, "time_unit": unit}, "time") == text
    assert pickers.span_parts(text) == again


@pytest.mark.parametrize(
    ("typed", "unit", "text", "again"),
    [
        ("8", "GiB", "8GiB", ("8", "GiB")),
        ("1.5", "GiB", "1.5GiB", ("1.5", "GiB")),
        ("512MiB", "GiB", "512MiB", ("512", "MiB")),
        ("8G", "MiB", "8G", ("8G", "GiB")),
        ("much", "MiB", "much MiB", ("much", "MiB")),
        ("", "MiB", "", ("", "GiB")),
    ],
)
def test_a_size(typed: str, unit: str, text: str, again: tuple[str, str]) -> None:
    assert pickers.memory({"memory": typed, "memory_unit": unit}, "memory") == text
    assert pickers.memory_parts(text) == again


@pytest.mark.parametrize(
    ("typed", "period", "text", "again"),
    [
        ("300", "term", "300h/term", ("300", "term")),
        ("2,5", "week", "2.5h/week", ("2.5", "week")),
        ("20h/week", "term", "20h/week", ("20", "week")),
        ("5h/day", "term", "5h/day", ("5h/day", "term")),
        ("lots", "week", "lots/week", ("lots", "week")),
        ("", "week", "", ("", "term")),
    ],
)
def test_a_budget(typed: str, period: str, text: str, again: tuple[str, str]) -> None:
    assert pickers.budget({"budget": typed, "budget_unit": period}, "budget") == text
    assert pickers.budget_parts(text) == again


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"people": "ann, ben"}, "ann, ben"),
        ({"people": "ann ben", "people_1": "cleo"}, "cleo, ann, ben"),
        ({"people": " ", "people_1": "cleo", "people_3": "dan"}, "cleo, dan"),
        ({}, ""),
    ],
)
def test_selected_and_typed_names_are_one_list(fields: dict[str, str], text: str) -> None:
    assert pickers.chosen(fields, "people", split_names) == text


def test_selected_names_come_first_and_keep_their_order() -> None:
    found = pickers.choices("zoe, ann", ["ann", "ben"])
    assert found == [("zoe", True), ("ann", True), ("ben", False)]
