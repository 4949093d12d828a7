"""Cached parts of pages equal those that are rendered again."""

from __future__ import annotations

from jinja2 import DictLoader, Environment, StrictUndefined

from carrel.hub.web.html.filters import drawn_once, urlencode

ROW = '<td>{{ seen(id) }}</td><td>{{ place if place is not none else "-" }}</td>'


def test_a_row_is_rendered_again_only_if_a_value_changed() -> None:
    drawn: list[str] = []

    def seen(name: str) -> str:
        drawn.append(name)
        return name

    environment = Environment(
        loader=DictLoader({"row.html": ROW}), autoescape=True, undefined=StrictUndefined
    )
    environment.globals["seen"] = seen
    draw = drawn_once(environment)
    first = draw("row.html", id="<j-1>", place=3)
    assert first == "<td>&lt;j-1&gt;</td><td>3</td>"
    assert draw("row.html", id="<j-1>", place=3) == first
    assert draw("row.html", id="<j-1>", place=2) == "<td>&lt;j-1&gt;</td><td>2</td>"
    assert draw("row.html", id="<j-1>", place=None) == "<td>&lt;j-1&gt;</td><td>-</td>"
    assert drawn == ["<j-1>"] * 3


def test_addresses_are_written_as_ever() -> None:
    assert urlencode("a b/ü&c=1") == "a%20b/%C3%BC%26c%3D1"
    assert urlencode({"span": "day", "group": "a b"}) == "span=day&group=a+b"
