"""Accessibility, layout and errors of every page: see every_page.py for the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ..hub.web.fakes import World
from ..hub.web.reading import pages_and_parts
from .axe import OF_COLOURS
from .browser import Person, chromium
from .every_page import NO_PAGES, PAGES, Place
from .filled_site import FilledSite, filled_site
from .page_checks import by_keyboard, go, listens, looks, watched, well_formed

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


def _expected(place: Place, complaint: str) -> bool:
    """The browser logs unsuccessful responses."""
    return place.status != 200 and f"status of {place.status}" in complaint
