"""People at a real Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from ..requirements import need
from .support import Installation

FLAGS = (
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def artefacts() -> Path:
    """Where screenshots go: $CARREL_ARTEFACTS, or ``artefacts`` in the checkout."""
    folder = Path(
        os.environ.get("CARREL_ARTEFACTS") or Path(__file__).resolve().parents[2] / "artefacts"
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    need("browser", path, "no chromium on this machine (Debian's package: chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        except BaseException:
            what_was_seen(browser)
            raise
        finally:
            browser.close()


def what_was_seen(browser: Browser) -> None:
    """Pictures of all pages, for whoever looks at a failed test."""
    pages = [page for context in browser.contexts for page in context.pages]
    for number, page in enumerate(pages):
        page.screenshot(path=artefacts() / f"failed-{number}.png")


@dataclass
class Person:
    """Somebody at a browser window of their own."""

    name: str
    site: Installation
    page: Page
    complaints: list[str] = field(default_factory=list)
    """Errors in the browser's console and requests to other hosts."""

    @classmethod
    def sits_down(cls, browser: Browser, site: Installation, name: str) -> Person:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(30_000)
        person = cls(name=name, site=site, page=page)
        page.context.on("request", lambda request: person._check_host(request.url))
        page.on("websocket", lambda socket: person._check_host(socket.url))
        return person

    def sign_in(self) -> None:
        self.page.goto(self.site.url + "/")
        self.page.fill("#username_input", self.name)
        self.page.fill("#password_input", self.site.passwords[self.name])
        self.page.click("#login_submit")
        self.page.wait_for_url("**/services/carrel/")

    def desk(self) -> None:
        self.page.goto(self.site.service + "/")

    def start(self, devices: int, *, hours: str = "1", name: str = "") -> None:
        """Fill in the start form on the desk."""
        self.page.select_option("#devices", str(devices))
        self.page.fill("#hours", hours)
        self.page.fill("#server_name", name)
        self.page.click("#start")

    def stop_the_first(self) -> None:
        """Stop the first session on the desk, and say yes."""
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.locator("[id^=stop-s-]").first.click()

    def picture(self, title: str) -> None:
        self.page.screenshot(path=artefacts() / f"{title}.png")

    def _check_host(self, url: str) -> None:
        if url.startswith(("http", "ws")) and "//127.0.0.1:" not in url:
            self.complaints.append(url)
