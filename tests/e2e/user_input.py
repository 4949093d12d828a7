"""Users who navigate by visible text, with a mouse or with the keyboard only.

Both count their actions. They enter no address but the first one, and find elements by role and
name only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from playwright.sync_api import Locator, Page, expect

from .browser import SESSION_MS

MOST_KEYS = 60
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Return whether a field with ``autofocus`` has the focus after rendering."""


@dataclass
class Effort:
    """The actions so far; ``steps`` lists them as text."""

    clicks: int = 0
    keys: int = 0
    steps: list[str] = field(default_factory=list)


class UserInput(Protocol):
    """A way to act on a page."""

    page: Page
    effort: Effort

    def press(self, role: str, name: str) -> None:
        """Press a button or a link; ``name`` is a pattern."""

    def write(self, label: str, text: str) -> None:
        """Type into the field with this label."""


def found_on(page: Page, role: str, name: str) -> Locator:
    """Return the first visible element; ``summary`` is the element that opens details."""
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
    """Uses the mouse; clicks nothing that already has the focus."""

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
    """Uses only Tab, arrow keys in menus, Enter and letters."""

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
        # In an open menu the arrow keys move, and wrap around.
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
