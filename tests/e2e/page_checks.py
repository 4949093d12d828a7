"""Checks of every page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
)
from playwright.sync_api import Error as PlaywrightError

from .axe import findings
from .browser import take_picture
from .every_page import Place
from .user_input import found_on

DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
MOST_TABS = 120

_DESK = re.compile(r"/services/carrel/(?!static/)")
_REPLACED = re.compile("htmx:(afterRequest|sendAbort),")
"""htmx reports an error when a newer request replaces one in progress."""

_FOCUS = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const seen = getComputedStyle(at);
  const box = at.getBoundingClientRect();
  return {
    what: at.outerHTML.slice(0, 160),
    ring: (seen.outlineStyle !== "none" && parseFloat(seen.outlineWidth) > 0)
      || seen.boxShadow !== "none"
      // The browser itself marks the parts inside of these.
      || at.tagName === "IFRAME" || at.type === "date",
    inside: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth,
  };
}"""
_WIDE = """() => {
  const wide = document.documentElement.scrollWidth;
  if (wide <= innerWidth) return null;
  const out = [...document.querySelectorAll("body *")].filter((each) => {
    for (let up = each.parentElement; up; up = up.parentElement) {
      if (getComputedStyle(up).overflowX !== "visible" && up !== document.body) return false;
    }
    return each.getBoundingClientRect().right > innerWidth + 1;
  });
  return wide + " px: " + out.slice(-3).map((each) => each.outerHTML.slice(0, 120)).join(" | ");
}"""
_CUT_OFF = """() => [...document.querySelectorAll(".table-responsive")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => `${each.ariaLabel || each.id}: ${each.scrollWidth} of ${each.clientWidth} px`)"""
_BARE_TIMES = """() => [...document.querySelectorAll("time")]
  .filter((each) => !each.hasAttribute("datetime") || !each.title)
  .map((each) => each.outerHTML)"""
_DOUBLED = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}"""


_LISTENS = """addEventListener("htmx:sseMessage", () => {
  document.documentElement.dataset.heard = "";
}, true)"""
_EXPECTS_NEWS = 'html:not([data-heard]) [hx-trigger="sse:changed"]'
"""A stream begins with a change event."""


@dataclass
class Watch:
    """Errors of a page, and the hosts that it contacts."""

    allowed: str
    complaints: list[str] = field(default_factory=list)

    def heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not _REPLACED.match(message.text):
            self.complaints.append(f"console: {message.text}")

    def failed(self, error: PlaywrightError) -> None:
        self.complaints.append(f"script: {error}")

    def asked(self, request: Request) -> None:
        if request.url.startswith(("http", "ws")) and not request.url.startswith(self.allowed):
            self.complaints.append(f"asks another host: {request.url}")


@contextmanager
def watched(page: Page, site: str) -> Iterator[Watch]:
    watch = Watch(allowed=f"{site}/")
    listeners = {"console": watch.heard, "pageerror": watch.failed, "request": watch.asked}
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]
    yield watch
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


def go(page: Page, place: Place, site: str, ids: dict[str, str]) -> None:
    """Open the page as its user would."""
    if place.stays:
        # After a response without content the browser stays on the page.
        page.route(_DESK, lambda route: route.fulfill(status=204))
    answer = page.goto(site + place.address(ids), wait_until="commit")
    assert answer is not None
    assert answer.status == place.status, answer.status
    if not place.stays:
        page.wait_for_load_state("load")  # scripts listen only then
    for label, text in place.writes:
        page.get_by_label(label, exact=True).locator("visible=true").fill(text)
    for role, name in place.then:
        found_on(page, role, name).click()
    shown = page.get_by_text(place.shows).locator("visible=true").first
    expect(shown).to_be_visible()
    if not place.stays:
        page.wait_for_load_state("load")
        expect(page.locator(_EXPECTS_NEWS)).to_have_count(0)
    expect(page.locator(".htmx-request")).to_have_count(0)


def listens(context: BrowserContext) -> None:
    """Wait until the page has received the first event of its stream, which may replace parts."""
    context.add_init_script(_LISTENS)


def well_formed(page: Page) -> list[str]:
    wrong = []
    if page.locator("h1").count() != 1:
        wrong.append(f"it has {page.locator('h1').count()} h1")
    if not page.title().strip():
        wrong.append("it has no title")
    wrong += [f"bare time: {each}" for each in page.evaluate(_BARE_TIMES)]
    wrong += [f"doubled id: {each}" for each in page.evaluate(_DOUBLED)]
    return wrong


def looks(page: Page, name: str, theme: str, rules: Sequence[str] = ()) -> list[str]:
    """Check one theme on a phone and a desktop; return errors of layout and of axe's rules."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    expect(page.locator(f'html[data-bs-theme="{theme}"]')).to_have_count(1)
    return in_this_theme(page, name, theme, rules)


def in_this_theme(page: Page, name: str, theme: str, rules: Sequence[str] = ()) -> list[str]:
    """Check a page as it is on a phone and a desktop."""
    wrong = []
    page.set_viewport_size(PHONE)
    if wide := page.evaluate(_WIDE):
        wrong.append(f"wider than a phone, {wide}")
    _picture(page, f"{name}-phone-{theme}")
    page.set_viewport_size(DESKTOP)
    wrong += [f"a table wider than a desktop, {each}" for each in page.evaluate(_CUT_OFF)]
    _picture(page, f"{name}-desktop-{theme}")
    return [*wrong, *(f"{theme}: {found}" for found in findings(page, rules) if found.severe)]


def _picture(page: Page, name: str) -> None:
    take_picture(page, f"pages/{name}", full_page=True, animations="disabled")


def by_keyboard(page: Page, place: Place) -> list[str]:
    """Press Tab from the top to the main action; the focus must be visible at every step."""
    role, name = place.main
    named = page.get_by_role(role, name=re.compile(name))  # type: ignore[arg-type]  # as in user_input.py
    wanted = named.locator("visible=true")
    if not wanted.count():
        return [f"there is no {role} {name!r}"]
    wrong: list[str] = []
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        at = page.evaluate(_FOCUS)
        if at and not at["ring"]:
            wrong.append(f"focus is not visible on {at['what']}")
        if at and not at["inside"]:
            wrong.append(f"focus is out of sight on {at['what']}")
        if wanted.evaluate_all("all => all.includes(document.activeElement)"):
            return wrong
    return [*wrong, f"{MOST_TABS} tabs do not lead to {role} {name!r}"]
