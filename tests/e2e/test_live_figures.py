"""Live pages of usage, and an administrator's date, in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect

from .browser import Person
from .support import Installation

pytestmark = pytest.mark.browser
ROW = "() => document.activeElement.id"


def runs(site: Installation) -> str:
    """A short job of student1 that uses the device."""
    body = {"group": "cs101", "devices": 1, "seconds": 600, "command": ["true"]}
    answer = site.api("POST", "/requests", user="student1", json=body)
    assert answer.status_code == 201, answer.text
    made = str(answer.json()["id"])
    site.wait_for(made, "succeeded", user="student1", within=120)
    return made


def test_usage_updates_live_and_keeps_opened_tables(site: Installation, person: Person) -> None:
    page = person.page
    page.goto(f"{site.service}/usage")
    expect(page.get_by_text("No device was used in this period.")).to_be_visible()
    page.evaluate("window.stayed = true")
    first = runs(site)
    expect(page.locator(f"#row-{first}")).to_be_visible()
    page.locator("#summary-by-day").click()
    expect(page.locator("#region-by-day")).to_be_visible()
    page.locator(f"#row-{first}").focus()
    second = runs(site)
    expect(page.locator(f"#row-{second}")).to_be_visible()
    expect(page.locator("#region-by-day")).to_be_visible()
    assert page.evaluate(ROW) == f"row-{first}"
    assert page.evaluate("window.stayed") is True


def test_a_date_is_read_in_the_zone_in_which_the_page_shows_it(
    site: Installation, browser: Browser
) -> None:
    admin = Person.sits_down(browser, site, "admin")
    page = admin.page
    zone = page.context.new_cdp_session(page)
    zone.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    admin.sign_in()
    # Sent before the scripts that a page can wait for are loaded.
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/static/carrel.js", hold)
    page.goto(f"{site.service}/admin/pool", wait_until="commit")
    page.locator("[id^=change-SIM]").first.click()
    page.get_by_label("Stop remaining work at").fill("2034-11-22 18:00")
    page.locator("#preview").click(no_wait_after=True)
    expect(page.locator("#target .preview")).to_be_visible()
    held[-1].continue_()
    then = page.locator("#target .preview time").first
    expect(then).to_have_attribute("datetime", "2034-11-22T09:00:00Z")
    expect(then).to_contain_text("Nov 22, 2034, 6:00")
    assert admin.complaints == []
