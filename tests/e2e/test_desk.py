"""The desk in a browser: quotes, CPU now, the held device, the end, and the sign-out."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from ..faults.support import servers
from .browser import SESSION_MS, Person, another_page, take_picture
from .classes import the_demo_is_ready
from .support import Installation, eventually
from .widget_pages import write_notebook

pytestmark = pytest.mark.browser
LISTEN = """\
window.told = [];
window.asked = 0;
class Fake extends EventTarget {
  static permission = "default";
  static async requestPermission() { window.asked += 1; return (Fake.permission = "granted"); }
  constructor(title, options) { super(); window.told.push(options.body); }
}
window.Notification = Fake;
"""
"""Chromium without a screen shows no notifications: record them."""

PATIENCE_MS = 90_000
"""Time-out for starting a session."""
SIGN_OUT_SECONDS = 8.0
"""Sign-outs take effect within 5 s; the rest is for slow machines."""


@pytest.fixture
def person(person: Person) -> Person:
    """A student whose browser records notifications."""
    person.page.add_init_script(LISTEN)
    return person


def test_a_student_goes_from_the_quote_to_a_cpu_session_and_the_claimed_device(
    site: Installation, person: Person
) -> None:
    other = site.start_session("student2")
    site.wait_for(other["id"], "running", user="student2")
    page = person.page
    person.desk()
    expect(page.locator("#quote")).to_contain_text("Queued at position 1")
    page.select_option("#devices", "0")
    expect(page.locator("#quote")).to_contain_text("Starts immediately.")
    expect(page.get_by_role("button", name="Open on CPU now")).to_have_count(0)
    page.select_option("#devices", "1")
    expect(page.get_by_role("button", name="Wait for it")).to_be_visible()
    assert site.api("GET", "/requests", user="student1").json()["requests"] == []

    page.get_by_role("button", name="Open on CPU now and keep my position").click()
    page.wait_for_url("**/user/student1/lab**", timeout=SESSION_MS)
    lab, page = page, page.context.new_page()
    page.add_init_script(LISTEN)
    person.page = page
    person.desk()
    expect(page.locator("#desk-now")).to_contain_text("Its position is kept")
    assert page.evaluate("window.asked") == 0
    page.get_by_role("button", name="Notify me when it starts").click()
    expect(page.locator("#announcer")).to_contain_text("Your browser will notify you")
    assert page.evaluate("window.asked") == 1

    # The device is ready; the page updates without reloading.
    site.api("DELETE", f"/requests/{other['id']}", user="student2")
    held = page.locator("[data-held]")
    expect(held).to_contain_text("Your device is ready")
    expect(held.locator("time")).to_have_text(re.compile(r"^\d?\d:\d\d$"))
    expect(page).to_have_title("(1) Your device is ready · Carrel")
    assert page.evaluate("window.told") == [
        "1 device is held for you. Claim it on the desk before the time runs out."
    ]  # the script notifies before it changes the title
    person.picture("page-desk-held")
    a_held_device_is_given_up_and_the_next_one_claimed_in_jupyterlab(site, lab)

    page.bring_to_front()
    rows = page.locator("#desk-now .rows > li")
    expect(rows).to_have_count(2)
    a_session_is_extended_and_stopped(site, page, rows.filter(has_text="second"))
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Default session")
    page.once("dialog", lambda dialog: dialog.accept())
    rows.get_by_role("button", name="Stop").click()
    expect(page.locator("#desk-now")).to_contain_text("You have no session.")


def test_a_due_date_is_shown_without_seconds(site: Installation, person: Person) -> None:
    the_demo_is_ready(site)
    person.desk()
    due = person.page.locator("[aria-labelledby=assignments-title] time").first
    expect(due).to_have_text(re.compile(r"^[^:]*\d{4}[^:]*:\d\d[^:]*$"))


def a_session_is_extended_and_stopped(site: Installation, page: Page, gpu: Locator) -> None:
    left = site.api("GET", "/requests?kind=session", user="student1").json()["requests"]
    before = {each["server_name"]: each["seconds"] for each in left}
    with another_page(page):
        gpu.get_by_role("button", name="+30 min").click()
    after = site.api("GET", "/requests?kind=session", user="student1").json()["requests"]
    assert {e["server_name"]: e["seconds"] for e in after}["second"] == before["second"] + 1800
    page.once("dialog", lambda dialog: dialog.accept())
    with another_page(page):
        gpu.get_by_role("button", name="Stop").click()


def a_held_device_is_given_up_and_the_next_one_claimed_in_jupyterlab(
    site: Installation, lab: Page
) -> None:
    """The device is held for the session gpu, whose place was kept."""
    body = {"devices": 1, "hours": 1.0, "group": "cs101", "claim": True}
    second = site.api("POST", "/sessions/second", user="student1", json=body).json()["id"]
    lab.bring_to_front()
    toast = lab.locator(".Toastify__toast", has_text="held for the session gpu")
    expect(toast).to_contain_text(re.compile(r"Time left: \d+ (min|s)\."))
    toast.get_by_role("button", name="Claim").hover()
    take_picture(lab, "held-device-lab")
    toast.get_by_role("button", name="Give up").click()
    lab.locator(".jp-Dialog").get_by_role("button", name="Give up").click()

    toast = lab.locator(".Toastify__toast", has_text="held for the session second")
    toast.get_by_role("button", name="Claim").click()
    opens = lab.get_by_role("button", name="Open it")
    opens.hover()
    take_picture(lab, "claimed-device-lab")
    expect(toast).to_have_count(0)
    with lab.context.expect_page() as opened:
        opens.click()
    opened.value.wait_for_url("**/user/student1/second/lab**", timeout=SESSION_MS)
    assert site.request(second, user="student1")["state"] == "running"


def test_a_link_into_a_stopped_session_opens_its_page_after_the_start(
    site: Installation, person: Person
) -> None:
    link = "/user/student1/lab/tree/intro.ipynb"
    write_notebook(Path(site.state) / "homes" / "student1" / "intro.ipynb", "1 + 1")
    page = person.page
    eventually(lambda: servers(site, "student1") == {}, "the hub knows that none runs")
    page.goto(site.url + link)
    page.click("#start")  # JupyterHub's page: it is not running
    page.wait_for_url("**/services/carrel/?**")
    page.select_option("#devices", "0")
    page.click("#start")
    page.wait_for_url(f"**{link}**", timeout=SESSION_MS)
    for stock in ("/hub/home", "/hub/spawn/student1/second"):
        page.goto(site.url + stock)
        page.wait_for_url("**/services/carrel/**")
    expect(page.locator("#server_name")).to_have_value("second")
    site.api("DELETE", "/sessions/-", user="student1")


def test_a_job_from_the_home_runs_again_with_other_parameters(
    site: Installation, person: Person
) -> None:
    home = Path(site.state) / "homes" / "student1" / "course"
    write_notebook(home / "count.ipynb", "print(n * 'x')", parameters="n = 3  # how many")
    page = person.page
    page.goto(f"{site.service}/submit")
    page.get_by_role("button", name="course/").click()
    page.get_by_role("button", name="count.ipynb").click()
    expect(page.get_by_label("n whole number")).to_have_value("3")
    expect(page.locator("#quote")).to_contain_text("Starts immediately.")
    page.click("#submit")
    page.wait_for_url("**/requests/j-*")
    first = page.url.rpartition("/")[2]
    site.wait_for(first, "succeeded", user="student1", within=180)
    with another_page(page):
        page.get_by_role("link", name="Change and run").click()
    page.get_by_label("n whole number").fill("5")
    page.click("#submit")
    page.wait_for_url(lambda url: "/requests/j-" in url and first not in url)
    second = page.url.rpartition("/")[2]
    site.wait_for(second, "succeeded", user="student1", within=180)
    expect(page.locator("#cell-1-2 .output")).to_have_text("xxxxx\n")
    page.goto(f"{site.service}/requests?text=COUNT")
    expect(page.locator("tbody tr")).to_have_count(2)

    # And a command.
    page.goto(f"{site.service}/submit")
    page.get_by_label("A command").check()
    page.get_by_label("Command", exact=True).fill("echo 'a b'")
    page.click("#submit")
    page.wait_for_url("**/requests/j-*")
    expect(page.locator("#log")).to_contain_text("a b")
    page.get_by_role("link", name="Change and run").click()
    expect(page.get_by_label("Command", exact=True)).to_have_value("echo 'a b'")


def test_a_long_list_is_paged(site: Installation, person: Person) -> None:
    body = {"group": "cs101", "devices": 1, "seconds": 600, "command": ["many"]}
    blocker = site.start_session("student2")
    site.wait_for(blocker["id"], "running", user="student2")
    for _ in range(105):
        made = site.api("POST", "/requests", user="student1", json=body)
        assert made.status_code == 201, made.text
    page = person.page
    page.goto(f"{site.service}/requests?text=many&state=live")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(100)
    page.click("#next")
    expect(rows).to_have_count(5)
    page.click("#first")
    expect(rows).to_have_count(100)
    page.click("#cancel-all")
    expect(page.locator("h1")).to_have_text("Cancel 105 requests?")
    page.click("#confirm")
    expect(page.get_by_role("status").first).to_contain_text("105 requests cancelled.")
    eventually(
        lambda: not site.api("GET", "/requests?state=queued", user="student1").json()["requests"],
        "none waits",
        within=120,
    )
    site.api("DELETE", f"/requests/{blocker['id']}", user="student2")


def step(page: Page, url: str) -> str:
    """Take one step of a sign-in with the cookies of this browser; return the next address."""
    answer = page.context.request.get(url, max_redirects=0)
    assert answer.status in (302, 303), answer.status
    return answer.headers["location"]


def cookies(page: Page) -> str:
    return "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#username_input")).to_be_visible()


def is_signed_in(site: Installation, cookie: str) -> bool:
    answer = httpx.get(f"{site.service}/api/v1/me", headers={"Cookie": cookie}, timeout=30)
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200


def test_after_a_sign_out_no_other_tab_signs_in_again(site: Installation, person: Person) -> None:
    """A tab that began to sign in before the sign-out finishes after it."""
    page = person.page
    # One tab has its code before the sign-out, the other one's request arrives after it.
    authorize = step(page, f"{site.service}/login")
    callback = step(page, site.url + authorize)
    late = step(page, f"{site.service}/login")
    before = cookies(page)
    assert is_signed_in(site, before)
    sign_out(page)

    answer = httpx.get(site.url + late, headers={"Cookie": before}, timeout=30)
    assert answer.status_code == 302
    assert answer.headers["location"].startswith("/hub/login")
    tab = page.context.new_page()
    tab.goto(site.url + callback)
    tab.goto(site.service + "/")
    expect(tab.locator("#username_input")).to_be_visible()
    # A copy of the cookies is worth nothing either.
    eventually(lambda: not is_signed_in(site, before), "the cookie ends", within=SIGN_OUT_SECONDS)


def test_a_password_reset_ends_sign_ins_and_tokens_of_its_user_and_no_session(
    site: Installation, browser: Browser, person: Person
) -> None:
    other = Person.sits_down(browser, site, "student3")
    other.sign_in()
    cookie, token = cookies(other.page), site.token("student3")
    session = site.start_session("student3", devices=0)
    site.wait_for(session["id"], "running", user="student3")

    changed = site.cli("user", "passwd", "student3", "--random", "--state", str(site.state))
    site.passwords["student3"] = changed.stdout.split()[-1]
    del site.tokens["student3"]
    eventually(lambda: not is_signed_in(site, cookie), "the cookie ends", within=SIGN_OUT_SECONDS)
    me = f"{site.service}/api/v1/me"
    headers = {"Authorization": f"token {token}"}
    eventually(
        lambda: httpx.get(me, headers=headers, timeout=30).status_code == 401,
        "the token ends",
        within=SIGN_OUT_SECONDS,
    )
    other.page.goto(site.service + "/")
    expect(other.page.locator("#username_input")).to_be_visible()

    other.sign_in()
    found = site.wait_for(session["id"], "running", user="student3")
    assert found["id"] == session["id"]
    person.desk()
    expect(person.page.get_by_role("button", name="Sign out")).to_be_visible()
    site.api("DELETE", "/sessions/-", user="student3")
