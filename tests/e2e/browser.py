"""Users with a real Chromium."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Frame,
    Page,
    Response,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

from ..requirements import need
from .support import Installation

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
"""The first that is installed is used. The first one has no windows, and takes half the time."""
FLAGS = (
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 60_000.0
"""Time-out for actions that need one response of a server."""
SESSION_MS = 150_000.0
"""Time-out for actions that start a session and load JupyterLab."""
_PLAYWRIGHTS_OWN_MS = 5_000.0
_ASK_MS = 5_000.0
_SAID_AT_MOST = 60
_TEXT_AT_MOST = 2_000
_FIRST_REFUSAL = 400


def take_picture(page: Page, name: str, **options: Any) -> None:
    """Save a screenshot if $CARREL_ARTEFACTS names a folder.

    The browser draws the page again for each one, so that ordinary runs take none.
    """
    if os.environ.get("CARREL_ARTEFACTS"):
        page.screenshot(path=artefacts() / f"{name}.png", **options)


def artefacts() -> Path:
    """Return the folder of screenshots: $CARREL_ARTEFACTS, or ``artefacts`` in the checkout."""
    folder = Path(
        os.environ.get("CARREL_ARTEFACTS") or Path(__file__).resolve().parents[2] / "artefacts"
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def chromium(*, patience_ms: float = PATIENCE_MS) -> Iterator[Browser]:
    """Start a browser, and set how long ``expect`` waits meanwhile."""
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    need("browser", path, "no chromium on this machine (Debian's package: chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        expect.set_options(timeout=patience_ms)
        try:
            yield browser
        # Report also after a time-out or an interruption, and continue.
        except BaseException as error:
            print(what_was_seen(ask=isinstance(error, Exception)))
            raise
        finally:
            expect.set_options(timeout=_PLAYWRIGHTS_OWN_MS)
            _SEEN.clear()
            browser.close()


@dataclass
class Seen:
    """The log of one window, for the report of a failed test.

    Attributes:
        said: console messages, script errors, and failed requests.
    """

    who: str
    context: BrowserContext
    said: deque[str] = field(default_factory=lambda: deque(maxlen=_SAID_AT_MOST))

    @classmethod
    def by(cls, who: str, context: BrowserContext) -> Seen:
        made = cls(who, context)
        note = made.said.append
        context.on("console", lambda it: note(f"{it.type}: {it.text} ({it.location.get('url')})"))
        context.on("weberror", lambda it: note(f"script: {it.error}"))
        context.on("requestfailed", lambda it: note(f"{it.method} {it.url}: {it.failure}"))
        context.on("response", made._answered)
        context.on("page", lambda page: page.on("framenavigated", made._went))
        return made

    def _answered(self, answer: Response) -> None:
        if answer.status >= _FIRST_REFUSAL:
            self.said.append(f"{answer.request.method} {answer.url}: {answer.status}")

    def _went(self, frame: Frame) -> None:
        if frame.parent_frame is None:
            self.said.append(f"went to {frame.url}")

    def pages(self) -> Iterator[str]:
        """Return the address and text of each page; saves a screenshot of it."""
        for number, page in enumerate(self.context.pages):
            path = artefacts() / f"failed-{self.who or 'nobody'}-{number}.png"
            try:
                text = page.locator("body").inner_text(timeout=_ASK_MS)
                page.screenshot(path=path, timeout=_ASK_MS)
            except PlaywrightError as error:
                text = f"(cannot be looked at: {error.message.splitlines()[0]})"
            lines = [f"  | {line}" for line in text[:_TEXT_AT_MOST].splitlines() if line.strip()]
            yield "\n".join([f"page {number} is {page.url}, and shows:", *lines])


_SEEN: list[Seen] = []
"""Return the logs of all open windows."""


def what_was_seen(*, ask: bool = True) -> str:
    """Return the logs of all windows as text.

    Args:
        ask: query the browser too; not after an interruption within a call to it.
    """
    told = []
    for seen in _SEEN:
        told += [f"-- the window of {seen.who or 'nobody'}", *(seen.pages() if ask else ())]
        told += ["what happened in it, the newest last:", *(f"  {line}" for line in seen.said)]
    return "\n".join(told)


@contextmanager
def another_page(page: Page) -> Iterator[None]:
    """Wait until the action inside has loaded a new document."""
    page.evaluate("() => { document.documentElement.dataset.old = ''; }")
    yield
    expect(page.locator("html[data-old]")).to_have_count(0)
    page.wait_for_load_state()


@dataclass
class Person:
    """A user with a browser window of their own."""

    name: str
    site: Installation
    page: Page
    complaints: list[str] = field(default_factory=list)
    """Requests to other hosts."""

    @classmethod
    def sits_down(cls, browser: Browser, site: Installation, name: str) -> Person:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        _SEEN.append(Seen.by(name, context))
        page = context.new_page()
        person = cls(name=name, site=site, page=page)
        page.context.on("request", lambda request: person._check_host(request.url))
        page.on("websocket", lambda socket: person._check_host(socket.url))
        return person

    def sign_in(self) -> None:
        self.page.goto(self.site.url + "/")
        self.page.fill("#username_input", self.name)
        self.page.fill("#password_input", self.site.passwords[self.name])
        self.page.click("#login_submit")
        self.page.wait_for_url("**/services/carrel/", timeout=SESSION_MS)

    def desk(self) -> None:
        self.page.goto(self.site.service + "/")

    def start(self, devices: int, *, hours: str = "1", name: str = "") -> None:
        """Fill in the start form on the desk."""
        self.page.select_option("#devices", str(devices))
        self.page.fill("#hours", hours)
        self.page.fill("#server_name", name)
        self.page.click("#start")

    def stop_the_first(self) -> None:
        """Stop the first session on the desk, and confirm."""
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.locator("[id^=stop-s-]").first.click()

    def picture(self, title: str) -> None:
        take_picture(self.page, title)

    def _check_host(self, url: str) -> None:
        if url.startswith(("http", "ws")) and "//127.0.0.1:" not in url:
            self.complaints.append(url)
