"""Somebody who finds their way by what is written on a page: with a mouse, or with keys alone.

Both count what it took. No address is typed but the first one, and nothing is looked for by what
only a program sees: only roles and names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from playwright.sync_api import Locator, Page, expect

from .browser import SESSION_MS

MOST_KEYS = 60
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""A field with ``autofocus`` has the focus once the page was drawn."""


@dataclass
class Effort:
    """What it took so far; ``steps`` says it in words."""

    clicks: int = 0
    keys: int = 0
    steps: list[str] = field(default_factory=list)


class Hand(Protocol):
    """A way to act on a page."""

    page: Page
    effort: Effort

    def press(self, role: str, name: str) -> None:
        """A button or a link; ``name`` is a pattern."""

    def write(self, label: str, text: str) -> None:
        """Into the field of this label."""


def found_on(page: Page, role: str, name: str) -> Locator:
    """The first that is visible; ``summary`` stands for what opens a detail."""
    pattern = re.compile(name)
    # It has no role that all browsers agree on.
    named = (
        page.locator("summary", has_text=pattern)
        if role == "summary"
        else page.get_by_role(role, name=pattern)  # type: ignore[arg-type]  # any role is a str here
    )
    found = named.locator("visible=true").first
    expect(found).to_be_visible(timeout=SESSION_MS)
    return found


@dataclass
class Mouse:
    """Clicks on what it sees; what has the focus already needs none."""

    page: Page
    effort: Effort = field(default_factory=Effort)

    def press(self, role: str, name: str) -> None:
        found = found_on(self.page, role, name)
        self.effort.clicks += 1
        self.effort.steps.append(f"{role} {found.inner_text().strip() or name}")
        found.click()

    def write(self, label: str, text: str) -> None:
        found = self.page.get_by_label(label, exact=True)
        found.evaluate(_DRAWN)
        if not found.evaluate("one => one === document.activeElement"):
            self.effort.clicks += 1
            self.effort.steps.append(f"field {label}")
            found.click()
        self.page.keyboard.type(text)


@dataclass
class Keyboard:
    """Tab, arrows in menus, Enter and letters, and nothing else."""

    page: Page
    effort: Effort = field(default_factory=Effort)

    def press(self, role: str, name: str) -> None:
        found = found_on(self.page, role, name)
        self._reach(found, f"{role} {name}")
        self.effort.steps.append(f"{role} {found.inner_text().strip() or name}")
        self._key("Enter")

    def write(self, label: str, text: str) -> None:
        self._reach(self.page.get_by_label(label, exact=True), f"field {label}")
        self.page.keyboard.type(text)

    def _reach(self, wanted: Locator, what: str) -> None:
        # Inside an open menu one goes by arrows, and it goes round.
        in_menu = wanted.evaluate("one => !!one.closest('[role=menu]')")
        key = "ArrowUp" if in_menu else "Tab"
        for _ in range(MOST_KEYS):
            if wanted.evaluate("one => one === document.activeElement"):
                return
            self._key(key)
        raise AssertionError(f"{MOST_KEYS} times {key} do not lead to {what}")

    def _key(self, key: str) -> None:
        self.effort.keys += 1
        self.page.keyboard.press(key)
