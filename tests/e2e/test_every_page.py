"""Accessibility, layout and errors of every page: see every_page.py for the list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from carrel.hub.client import login

from ..hub.web.fakes import World
from ..hub.web.reading import pages_and_parts
from .axe import OF_COLOURS
from .browser import Person, another_page, chromium
from .every_page import NO_PAGES, PAGES, Place
from .filled_site import FilledSite, filled_site
from .page_checks import by_keyboard, go, in_this_theme, listens, looks, watched, well_formed

HUB_TEMPLATES = Path(__file__).resolve().parents[2] / "hub" / "jupyterhub" / "templates"

Windows = Callable[[str], Page]


def test_the_list_is_complete() -> None:
    read = pages_and_parts(World().app)
    listed = {place.route for place in PAGES if place.ours}
    assert read == listed | set(NO_PAGES)
    templates = {path.name for path in HUB_TEMPLATES.glob("*.html")} - {
        "page.html",
        "error.html",
    }  # base templates
    assert templates <= {place.route for place in PAGES}


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledSite]:
    with filled_site(tmp_path_factory.mktemp("pages") / "state") as made:
        yield made


@pytest.fixture(scope="module")
def browser(life: FilledSite) -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def windows(browser: Browser, life: FilledSite) -> Windows:
    """A window for each user, who signs in once and opens page after page in it."""
    made: dict[str, Page] = {}

    def window(who: str) -> Page:
        if who not in made:
            person = Person.sits_down(browser, life.site, who)
            listens(person.page.context)
            if who:
                person.sign_in()
            made[who] = person.page
        return made[who]

    return window


@pytest.fixture
def page(place: Place, windows: Windows) -> Iterator[Page]:
    made = windows(place.who)
    yield made
    made.unroute_all()
    made.goto("about:blank")


@pytest.mark.browser
@pytest.mark.parametrize("place", PAGES, ids=[place.name for place in PAGES])
def test_a_page_is_accessible(place: Place, life: FilledSite, page: Page) -> None:
    with watched(page, life.site.url) as watch:
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        go(page, place, life.site.url, life.ids)
        wrong = [
            *looks(page, place.name, "dark"),
            *looks(page, place.name, "light", OF_COLOURS),
            *well_formed(page),
            *by_keyboard(page, place),
        ]
    heard = [each for each in watch.complaints if not _expected(place, each)]
    assert [*wrong, *heard] == []


@pytest.mark.browser
def test_the_help_is_found_from_the_desk_searched_and_readable(
    life: FilledSite, windows: Windows
) -> None:
    """In the theme of the other pages, and back again; on the phone too."""
    page = windows("newcomer")
    with watched(page, life.site.url) as watch:
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.goto(life.site.service)
        page.get_by_role("link", name="Help", exact=True).click()
        wrong = in_this_theme(page, "help", "dark")
        page.get_by_role("textbox", name="Search").fill("guaranteed quota")
        page.keyboard.press("Enter")
        found = page.locator("#search-results a", has_text="administer groups")
        expect(found.first).to_be_visible()
        wrong += in_this_theme(page, "help-search", "dark")
        found.first.click()
        expect(page.get_by_role("heading", name="Quotas")).to_be_visible()
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        wrong += in_this_theme(page, "help-page", "light")
        page.get_by_role("link", name="Back to the desk").click()
        expect(page.get_by_role("heading", name="Desk")).to_be_visible()
    page.goto("about:blank")
    assert [*wrong, *watch.complaints] == []


@pytest.mark.browser
def test_compiled_code_is_deleted_after_a_question(life: FilledSite, windows: Windows) -> None:
    page = windows("student1")
    page.goto(f"{life.site.service}/account")
    rows = page.locator("#compile-cache tbody tr")
    expect(rows).to_have_count(2)
    delete = page.get_by_role("button", name="Delete what j-4c8x5w2n compiled")
    for answer in ("dismiss", "accept"):
        with page.expect_event("dialog") as asked:
            page.once("dialog", lambda dialog, answer=answer: getattr(dialog, answer)())
            delete.click()
        assert "The next jobs compile again." in asked.value.message
        expect(rows).to_have_count(2 if answer == "dismiss" else 1)
    expect(rows).to_contain_text(["digits.ipynb"])
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete all").click()
    expect(page.get_by_text("Nothing is kept at present.")).to_be_visible()
    page.goto("about:blank")


@pytest.mark.browser
def test_a_sign_in_on_the_command_line_ends_after_90_days(life: FilledSite) -> None:
    latest = time.time() + 90 * 86400
    made = login(life.site.url, "newcomer", life.site.passwords["newcomer"])
    assert made.expires_at == pytest.approx(latest, abs=300)


def _expected(place: Place, complaint: str) -> bool:
    """The browser logs unsuccessful responses."""
    return place.status != 200 and f"status of {place.status}" in complaint


@pytest.mark.browser
def test_a_published_job_is_run_by_another_group_and_an_edited_receipt_refused(
    life: FilledSite, windows: Windows, tmp_path: Path
) -> None:
    site, page, title = life.site, windows("student1"), "Four rounds for everyone"
    page.goto(f"{site.service}/gallery/publish?request={life.ids['done']}")
    page.get_by_label("Title").fill(title)
    page.get_by_label("Who may see it").select_option("*")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()

    other = windows("vera")
    other.goto(f"{site.service}/gallery")
    other.get_by_role("link", name=title).click()
    other.get_by_role("link", name="Run it").click()
    expect(other.locator("#chosen")).to_contain_text("as it was published")
    other.get_by_role("button", name="Submit", exact=True).click()
    expect(other.locator("#request-state")).to_contain_text("succeeded")
    expect(other.locator("body")).to_contain_text("vision")

    other.locator("#receipt-panel summary").click()
    with other.expect_download() as loading:
        other.get_by_role("link", name="Download the signed receipt").click()
    receipt = tmp_path / "receipt.json"
    loading.value.save_as(receipt)
    verify = ("verify", str(receipt), "--site", site.url)
    assert "Valid: receipt of" in site.cli(*verify).stdout
    receipt.write_text(receipt.read_text().replace("vera", "ada"))
    refused = site.cli(*verify, check=False)
    assert (refused.returncode, "The receipt was edited" in refused.stderr) == (1, True)

    first = other.url.rpartition("/")[2]
    with another_page(other):
        other.get_by_role("button", name="Run again on the same image").click()
    # The differences from the first run are linked when it has ended.
    with another_page(other):
        other.get_by_role("link", name=f"With {first}").click()
    expect(other.get_by_role("heading", name="Compare two jobs")).to_be_visible()
    expect(other.locator("main")).to_contain_text("The runs are equal")
    other.goto("about:blank")
    page.goto("about:blank")


@pytest.mark.browser
def test_an_administrator_moves_a_user_announces_it_and_makes_a_backup(
    life: FilledSite, windows: Windows
) -> None:
    """After the tests of the pages, which it would change."""
    site, page, text = life.site, windows("admin"), "newcomer moves to vision."
    page.goto(f"{site.service}/admin/people")
    page.get_by_role("link", name="newcomer", exact=True).click()
    page.get_by_label("Member of cs101").uncheck()
    page.get_by_label("Member of vision").check()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("status").filter(has_text="Effect")).to_contain_text(
        "newcomer is no longer a member of cs101."
    )
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    moved = site.api("GET", "/people/newcomer", user="admin").json()
    assert moved["groups"] == ["vision"]

    page.get_by_role("link", name="Announcements").click()
    page.get_by_label("Text").fill(text)
    page.get_by_label("Level").select_option("warning")
    page.get_by_label("Until").fill("2099-01-01T18:00")
    page.get_by_role("button", name="Announce", exact=True).click()
    banner = {"has_text": text}
    expect(page.locator(".announcement").filter(**banner)).to_be_visible()

    seen = windows("newcomer")
    seen.goto(f"{site.url}/hub/token")
    closed = seen.locator(".announcement").filter(**banner)
    closed.get_by_role("button", name="Close").click()
    expect(closed).to_have_count(0)
    seen.goto(f"{site.service}/usage")
    expect(seen.locator(".announcement").filter(has_text="The pool grows")).to_be_visible()
    expect(closed).to_have_count(0)
    visitor = seen.context.browser.new_page() if seen.context.browser else seen
    visitor.goto(f"{site.url}/hub/login")
    expect(visitor.locator(".announcement").filter(**banner)).to_be_visible()
    visitor.close()

    page.get_by_role("link", name="Backup", exact=True).click()
    page.get_by_role("button", name="Back up now").click()
    expect(page.locator("#backups tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Doctor", exact=True).click()
    page.get_by_role("button", name="Run the checks").click()
    expect(page.locator("#findings")).to_contain_text("Checked")
