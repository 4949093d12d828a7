"""Accessibility, layout and errors of every page: see every_page.py for the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from ..hub.web.fakes import World
from ..hub.web.reading import pages_and_parts
from .browser import Person, chromium
from .every_page import NO_PAGES, PAGES, Place
from .filled_site import FilledSite, filled_site
from .page_checks import by_keyboard, go, listens, looks, watched, well_formed

HUB_TEMPLATES = Path(__file__).resolve().parents[2] / "hub" / "jupyterhub" / "templates"

Contexts = Callable[[str], BrowserContext]


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
def contexts(browser: Browser, life: FilledSite) -> Contexts:
    """A window for each user, who signs in once."""
    made: dict[str, BrowserContext] = {}

    def context(who: str) -> BrowserContext:
        if who not in made:
            person = Person.sits_down(browser, life.site, who)
            listens(person.page.context)
            if who:
                person.sign_in()
            person.page.close()
            made[who] = person.page.context
        return made[who]

    return context


@pytest.fixture
def page(place: Place, contexts: Contexts) -> Iterator[Page]:
    made = contexts(place.who).new_page()
    yield made
    made.close()


@pytest.mark.browser
@pytest.mark.parametrize("place", PAGES, ids=[place.name for place in PAGES])
def test_a_page_is_accessible(place: Place, life: FilledSite, page: Page) -> None:
    with watched(page, life.site.url) as watch:
        wrong = []
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            go(page, place, life.site.url, life.ids)
            wrong += looks(page, place.name, theme)
        wrong += [*well_formed(page), *by_keyboard(page, place)]
    heard = [each for each in watch.complaints if not _expected(place, each)]
    assert [*wrong, *heard] == []


def _expected(place: Place, complaint: str) -> bool:
    """The browser logs unsuccessful responses."""
    return place.status != 200 and f"status of {place.status}" in complaint
