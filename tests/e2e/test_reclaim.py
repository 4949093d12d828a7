"""A group reclaims devices that another borrows: notice, save, stop, and the work continues.

And a suggestion of what would help comes true, and a job leaves a device that fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from carrel.hub.messages import units
from carrel.spawners.devices.simulated import FAULTS

from .browser import SESSION_MS, Person, take_picture
from .lending import (
    BORROWER,
    OWNER,
    asked_back,
    begun,
    borrow_all,
    leases_by_device,
    lending_site,
    overlaps,
    submit,
)
from .support import Installation, eventually

GRACE = 20.0
"""A grace period that is long enough for all checks."""
PREEMPTION_NOTICE = "cs101 reclaims devices"
WAITS_FOR_IT = "being preempted for it; it starts when the grace period ends."
EVIDENCE = "Simulated: 2 uncorrected memory errors"
HELPS = "With 1 device instead of 2 it starts now."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with lending_site(tmp_path_factory.mktemp("reclaim") / "state", grace=GRACE) as made:
        yield made


def signed_in(browser: Browser, site: Installation, name: str) -> Person:
    person = Person.sits_down(browser, site, name)
    person.sign_in()
    return person


@pytest.mark.browser
def test_a_session_reclaims_borrowed_devices_and_all_owners_see_the_reason(
    browser: Browser, site: Installation
) -> None:
    (site.state / "homes" / BORROWER / "story").mkdir(parents=True)
    borrower, owner = (signed_in(browser, site, name) for name in (BORROWER, OWNER))
    borrowed = borrow_all(site, "--workdir", "story")

    # cs101 reclaims two: a student requests a session with two devices.
    owner.start(2)
    owner.page.wait_for_url("**/services/carrel/wait/-")
    told = asked_back(site, borrowed)
    first, second = told
    stops_at = max(site.request(each, user=BORROWER)["warning"]["stops_at"] for each in told)
    (own,) = (each["id"] for each in site.api("GET", "/requests", user=OWNER).json()["requests"])

    # The owner gets a notice before the stop, with reason and time; so does the waiting user.
    with ThreadPoolExecutor() as side_by_side:
        said = [
            side_by_side.submit(site.cli, *words, user=user)
            for user, words in (
                (OWNER, ("why", own)),
                (OWNER, ("ps", "--why")),
                (BORROWER, ("show", first)),
            )
        ]
        expect(owner.page.locator("#wait-status")).to_contain_text(WAITS_FOR_IT)
        borrower.page.goto(f"{site.service}/requests/{first}")
        state = borrower.page.locator("#request-state")
        expect(state.locator(".idle-warning")).to_contain_text(PREEMPTION_NOTICE)
    why, listed, shown = (each.result().stdout for each in said)
    assert WAITS_FOR_IT in why
    assert WAITS_FOR_IT in listed
    assert PREEMPTION_NOTICE in shown
    assert all(PREEMPTION_NOTICE in message for message in told.values())
    borrower.picture("reclaim-notice")
    owner.picture("reclaim-waits")
    # Killed within the grace period: the notice is in the store.
    site.kill("service")

    # After the grace period the devices are free, and the session opens by itself.
    owner.page.wait_for_url(f"**/user/{OWNER}/lab**", timeout=SESSION_MS)
    lease = site.wait_for(own, "running", user=OWNER)["lease"]
    assert len(lease["devices"]) == 2
    assert lease["granted_at"] >= stops_at
    home = site.state / "homes" / BORROWER / "story"
    assert all((home / f"{each}.checkpoint").exists() for each in told)

    # The others are queued at their old position, with the same reason everywhere.
    listed = site.cli("ps", "--why", user=BORROWER).stdout
    for each in told:
        waits = site.request(each, user=BORROWER)["wait"]["sentence"]
        assert waits in listed
        if each == first:
            expect(state).to_contain_text(waits)
    assert waits in site.cli("why", second, user=BORROWER).stdout

    # The session ends, and the jobs continue from their checkpoints.
    owner.desk()
    owner.stop_the_first()
    for each in told:
        site.wait_for(each, "succeeded", user=BORROWER)
    expect(state).to_contain_text("succeeded")
    (home / "enough").touch()
    for each in borrowed:
        ended = site.wait_for(each, "succeeded", user=BORROWER)
        assert ended["lease"]["epoch"] == (2 if each in told else 1)
    site.wait_for(own, "succeeded", user=OWNER)

    the_ledger_adds_up(site, borrower)
    the_ledger_adds_up(site, owner)
    lent = leases_by_device(site)
    assert len(lent) == 4
    assert all(not overlaps(spans) for spans in lent.values()), lent
    assert borrower.complaints == owner.complaints == []


@pytest.mark.browser
@pytest.mark.slow
def test_a_job_whose_device_fails_ends_on_another_one_uncharged_for_the_loss(
    browser: Browser, site: Installation
) -> None:
    owner, admin = (signed_in(browser, site, name) for name in (OWNER, "admin"))
    (site.state / "homes" / OWNER / "fault").mkdir(parents=True)
    job = submit(site, OWNER, "cs101", 1, "--workdir", "fault")
    lost = site.wait_for(job, "running", user=OWNER)["lease"]
    eventually(lambda: begun(site, job, OWNER), "it has begun")
    device = lost["devices"][0]
    page = owner.page
    page.goto(f"{site.service}/requests/{job}")
    state = page.locator("#request-state")
    expect(state).to_contain_text("running")

    # In the middle of its work the device reports errors.
    faults = site.state / FAULTS
    fault = {device["id"]: {"health": "sick", "why": EVIDENCE}}
    faults.write_text(json.dumps(fault))

    def moved() -> dict[str, Any] | None:
        found = site.request(job, user=OWNER)
        # From its checkpoint it may end at once.
        again = found["state"] in ("running", "stopping", "succeeded")
        return found["lease"] if again and found["lease"]["epoch"] == 2 else None

    lease = eventually(moved, "it runs on another device", within=60)
    assert lease["devices"][0]["id"] != device["id"]
    expect(page.locator("main")).to_contain_text(EVIDENCE)
    pictures(page, "fault-job")
    admin.page.goto(f"{site.service}/admin/pool")
    expect(admin.page.locator("main")).to_contain_text(EVIDENCE)
    pictures(admin.page, "fault-pool")

    (site.state / "homes" / OWNER / "fault" / "enough").touch()
    site.wait_for(job, "succeeded", user=OWNER)
    expect(state).to_contain_text("succeeded")
    expect(page.locator("#log")).to_contain_text("ran without an error")
    expect(page.locator("#log")).not_to_contain_text("KeyboardInterrupt")
    pictures(page, "fault-ended")
    charged = {line["lease_id"] for line in site.ledger(OWNER) if line["device_seconds"] > 0}
    assert lease["id"] in charged
    assert lost["id"] not in charged
    assert owner.complaints == admin.complaints == []

    # The device recovers, for the tests below.
    faults.unlink()

    def sound() -> bool:
        site.cli("pool", "release", device["id"], user="admin", check=False)
        devices = site.cli_json("pool", user="admin")["devices"]
        return not any(each["quarantined"] or each["state"] == "sick" for each in devices)

    eventually(sound, "all devices are sound")


def pictures(page: Page, name: str) -> None:
    """Take pictures on a screen and on a phone."""
    size = page.viewport_size
    assert size is not None
    take_picture(page, f"{name}-light", full_page=True)
    page.set_viewport_size({"width": 390, "height": 844})
    take_picture(page, f"{name}-phone", full_page=True)
    page.set_viewport_size(size)


def the_ledger_adds_up(site: Installation, person: Person) -> None:
    """Check the usage page of the charged user; no interval of a lease is charged twice."""
    lines = site.ledger(person.name)
    total = sum(line["device_seconds"] for line in lines)
    assert total > 0
    for line in lines:
        span = line["ends_at"] - line["starts_at"]
        assert line["device_seconds"] == pytest.approx(line["devices"] * span)
    for lease in {line["lease_id"] for line in lines}:
        of_it = [
            (line["starts_at"], line["ends_at"]) for line in lines if line["lease_id"] == lease
        ]
        assert not overlaps(of_it), of_it
    person.page.goto(f"{site.service}/usage")
    shown = person.page.locator("#usage-live .figure").first
    expect(shown).to_have_text(units.device_hours(total))
    for request_id in {line["request_id"] for line in lines}:
        of_it = sum(line["device_seconds"] for line in lines if line["request_id"] == request_id)
        opened = person.page.locator(f"#ledger-of-{request_id}")
        opened.locator("summary").first.click()
        expect(opened.locator(".ledger-sum-of")).to_contain_text(units.device_hours(of_it))


@pytest.mark.slow
@pytest.mark.browser
def test_a_suggestion_of_what_would_help_comes_true(browser: Browser, site: Installation) -> None:
    (site.state / "homes" / BORROWER / "help").mkdir(parents=True)
    held = submit(site, BORROWER, "cs101", 3, "--workdir", "help")
    site.wait_for(held, "running", user=BORROWER)

    # On the command line: run the command that `carrel why` prints.
    job = submit(site, OWNER, "cs101", 2, "--workdir", ".")
    said = eventually(
        lambda: HELPS in (out := site.cli("why", job, user=OWNER).stdout) and out, "it is told"
    )
    (command,) = re.findall(r"^ +carrel (change .*)$", said, re.MULTILINE)
    before = site.request(job, user=OWNER)
    assert "1 device" in site.cli(*command.split(), user=OWNER).stdout
    after = site.wait_for(job, "running", user=OWNER)
    assert len(after["lease"]["devices"]) == 1
    assert after["submitted_at"] == before["submitted_at"]
    site.cli("cancel", job, "--yes", user=OWNER)
    site.wait_for(job, "cancelled", user=OWNER)

    # On the page: one click, and the session opens by itself.
    person = signed_in(browser, site, OWNER)
    person.start(2)
    person.page.wait_for_url("**/services/carrel/wait/-")
    helps = person.page.get_by_role("listitem").filter(has_text=HELPS)
    expect(helps).to_be_visible()
    person.picture("what-would-help")
    helps.get_by_role("button", name="Change it").click()
    person.page.wait_for_url(f"**/user/{OWNER}/lab**", timeout=SESSION_MS)
    (session,) = site.cli_json("session", "ls", user=OWNER)["requests"]
    assert len(session["lease"]["devices"]) == 1
    assert person.complaints == []
    site.cli("session", "stop", "-", user=OWNER)
    (site.state / "homes" / BORROWER / "help" / "enough").touch()
    site.wait_for(held, "succeeded", user=BORROWER)
