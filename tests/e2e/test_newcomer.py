"""A new user, from the sign-in page: a session with a device, a job, its result, and why it waits.

Once with a mouse and once with the keyboard only, without documentation and without typing an
address. The number of actions is written to the artefact folder, and may not grow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from .browser import SESSION_MS, Person, artefacts, take_picture
from .support import Installation
from .user_input import Keyboard, Mouse, UserInput

pytestmark = pytest.mark.browser

Sits = Callable[[Page], UserInput]

MOST_CLICKS = 8
"""Of the first newcomer, from the sign-in page to the job's result."""
MOST_CLICKS_TO_WHY = 3
"""Of the second one, from the sign-in page to the reason of the wait."""


@pytest.fixture
def leaves(site: Installation) -> Iterator[None]:
    """The device must be free for the next newcomer."""
    yield
    for who in site.passwords:
        for request in site.api("GET", "/requests", user=who).json()["requests"]:
            if not request["ended"]:
                site.api("DELETE", f"/requests/{request['id']}", user=who)
                site.wait_for(request["id"], "cancelled", "succeeded", user=who)


@pytest.mark.usefixtures("leaves")
@pytest.mark.parametrize(
    ("hand", "first", "second"),
    [
        pytest.param(Mouse, "student1", "student2", id="with a mouse"),
        pytest.param(
            Keyboard,
            "student3",
            "teacher",
            id="by keyboard alone",
            # Keys reach the main action of every page: test_every_page.py.
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_new_user_succeeds_without_documentation(
    site: Installation, browser: Browser, hand: Sits, first: str, second: str
) -> None:
    one = Person.sits_down(browser, site, first)
    mine = hand(one.page)
    signs_in(one, mine)
    opens_a_session(one, mine)
    goes_back_to_the_desk(one, mine)
    submits_the_sample(mine)
    sees_the_result(mine)

    two = Person.sits_down(browser, site, second)
    other = hand(two.page)
    signs_in(two, other)
    reads_why(two.page, other)

    name = type(mine).__name__.lower()
    took = {"a session, a job and its result": vars(mine.effort), "why": vars(other.effort)}
    (artefacts() / f"newcomer-{name}.json").write_text(json.dumps(took, indent=2))
    assert mine.effort.clicks <= MOST_CLICKS, mine.effort.steps
    assert other.effort.clicks <= MOST_CLICKS_TO_WHY, other.effort.steps
    assert [*one.complaints, *two.complaints] == []


def signs_in(person: Person, hand: UserInput) -> None:
    hand.page.goto(person.site.url)  # the address that `carrel up` prints
    hand.write("Username:", person.name)
    hand.write("Password:", person.site.passwords[person.name])
    hand.press("button", "^Sign in$")
    hand.page.wait_for_url("**/services/carrel/")


def opens_a_session(person: Person, hand: UserInput) -> None:
    """The form selects a device by default."""
    hand.press("button", "^Start$")
    hand.page.wait_for_url(f"**/user/{person.name}/lab**", timeout=SESSION_MS)
    hand.page.wait_for_selector(".jp-Launcher", timeout=SESSION_MS)
    # Until then JupyterLab takes the focus.
    expect(hand.page.locator("#jupyterlab-splash")).to_have_count(0)
    person.picture("newcomer-lab")
    (session,) = person.site.api("GET", "/requests?kind=session", user=person.name).json()[
        "requests"
    ]
    assert session["lease"]["devices"]


def goes_back_to_the_desk(person: Person, hand: UserInput) -> None:
    with person.page.context.expect_page() as opened:
        hand.press("link", "^Desk$")
    hand.page = opened.value
    hand.page.wait_for_url("**/services/carrel/")
    expect(hand.page.get_by_role("link", name=re.compile("^Open")).first).to_be_visible()


def submits_the_sample(hand: UserInput) -> None:
    hand.press("link", "^Submit")
    page = hand.page
    hand.press("button", "digits.ipynb")
    expect(page.get_by_label("epochs")).to_be_visible()
    hand.press("button", "^Submit$")
    page.wait_for_url(re.compile(r"/requests/j-\w+$"))


def sees_the_result(hand: UserInput) -> None:
    """On the page that opens after submitting, without another action."""
    page = hand.page
    expect(page.get_by_text(re.compile(r"accuracy (0\.\d+|1\.0)")).first).to_be_visible(
        timeout=180_000
    )
    expect(page.get_by_text("succeeded").first).to_be_visible()


def reads_why(page: Page, hand: UserInput) -> None:
    hand.press("button", "^Wait for it$")
    page.wait_for_url("**/services/carrel/wait/-")
    main = page.get_by_role("main")
    expect(main).to_contain_text(re.compile(r"Position\s+1"))
    expect(main).to_contain_text("Not enough devices are free")
    expect(main).to_contain_text("Expected")
    take_picture(page, "newcomer-why", full_page=True)
