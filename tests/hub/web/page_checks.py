"""Checks that hold for every page."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """Collects the elements that a browser acts on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def ids(self) -> list[str]:
        return [str(attrs["id"]) for _, attrs in self.tags if "id" in attrs]


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def check_page(html: str) -> Page:
    """Check that a page has no inline code, unique ids, and a label per field."""
    page = Page(html)
    for tag, attrs in page.tags:
        assert "style" not in attrs, (tag, attrs)
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        for name in ("src", "href", "action"):
            assert (attrs.get(name) or "/").startswith(("/", "#")), (tag, attrs)
    assert all(script.get("src") for script in page.all("script"))
    assert not page.all("style")
    assert len(page.ids) == len(set(page.ids))
    labelled = {label["for"] for label in page.all("label")}
    for field in page.all("input") + page.all("select"):
        assert field.get("type") == "hidden" or field["id"] in labelled
    assert page.all("main")
    assert "skip-link" in html
    return page
