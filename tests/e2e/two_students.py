"""Two students and one device, in a real browser, on any backend."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from playwright.sync_api import expect

from carrel.hub.messages import units

from .browser import SESSION_MS, Person, chromium
from .support import Installation, eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A notebook in student1's home.

    Attributes:
        submit: its name and parameters, as typed.
        says: its output, with the resulting number.
        between: the range of that number.
    """

    submit: str = "digits.ipynb -p hidden 64 -p seed 7"
    says: str = r"accuracy (0\.\d+|1\.0+)"
    between: tuple[float, float] = (0.5, 1.0)


def two_students_and_one_device(
    site: Installation, *, isolated: bool, work: Work, chapter: str = ""
) -> None:
    """``chapter`` is the prefix of the screenshots."""
    with chromium() as browser:
        one = Person.sits_down(browser, site, "student1")
        two = Person.sits_down(browser, site, "student2")

        # student1 gets the device.
        one.sign_in()
        expect(one.page.locator("body")).to_contain_text("This is a demo")
        warned = "not isolated from each other" in one.page.locator("body").inner_text()
        assert warned is not isolated
        expect(one.page.locator(".tile").first).to_contain_text("simulated")
        one.picture(f"{chapter}1-desk-of-student1")
        one.start(1)
        one.page.wait_for_url("**/user/student1/lab**", timeout=SESSION_MS)
        one.page.wait_for_selector(".jp-Launcher", timeout=SESSION_MS)
        one.picture(f"{chapter}2-session-of-student1")

        # student2 is queued, with the reason.
        two.sign_in()
        two.start(1)
        two.page.wait_for_url("**/services/carrel/wait/-")
        status = two.page.locator("#wait-status")
        expect(status).to_contain_text("Queued at position 1")
        expect(status).to_contain_text("Not enough devices are free")
        expect(status).to_contain_text("Expected")
        two.picture(f"{chapter}3-student2-waits")

        # student1 submits a job from the session's terminal; it is queued behind student2.
        job = submit_in_terminal(one, work, chapter)
        waiting = eventually(
            lambda: site.request(job, user="student1")["wait"], "the job has its place"
        )
        assert site.request(job, user="student1")["state"] == "queued"
        assert (waiting["place"], waiting["reason"]) == (2, "behind_others")

        # JupyterHub dies while student2 waits, without effect.
        site.kill("hub")
        expect(status).to_contain_text("Queued at position 1")

        # student1 stops the session on the desk; student2's starts by itself.
        one.desk()
        expect(one.page.locator("[id^=stop-s-]").first).to_be_visible()
        one.stop_the_first()
        two.page.wait_for_url("**/user/student2/lab**", timeout=SESSION_MS)
        two.page.wait_for_selector(".jp-Launcher", timeout=SESSION_MS)
        two.picture(f"{chapter}4-student2-got-the-device")

        # student2 stops; the job completes while student1 watches.
        two.desk()
        two.stop_the_first()
        one.page.click(f"#name-{job}")
        expect(one.page.locator("body")).to_contain_text("succeeded", timeout=180_000)
        one.picture(f"{chapter}5-job-of-student1")

        ended = site.request(job, user="student1")
        assert ended["state"] == "succeeded", ended["cause"]
        least, most = work.between
        assert least < result(site, job, work.says) <= most

        the_desk_says_what_the_ledger_says(one, ended["device_seconds"])
        one.picture(f"{chapter}6-desk-at-the-end")
        assert one.complaints == []
        assert two.complaints == []


def the_desk_says_what_the_ledger_says(person: Person, of_the_job: float) -> None:
    person.desk()
    total = sum(entry["device_seconds"] for entry in person.site.ledger(person.name))
    shown = person.page.locator("#device-hours")
    expect(shown).to_have_text(units.device_hours(total))
    assert total > of_the_job > 0


def submit_in_terminal(person: Person, work: Work, chapter: str) -> str:
    """Type the command into a terminal of JupyterLab; return the job's id."""
    page = person.page
    said = ""

    def hears(frame: bytes | str) -> None:
        nonlocal said
        said += str(frame)

    page.on("websocket", lambda socket: socket.on("framereceived", hears))
    page.locator(".jp-LauncherCard", has_text="Terminal").first.click()
    terminal = page.locator(".jp-Terminal .xterm-helper-textarea")
    terminal.wait_for(state="attached")
    # Frames arrive while the browser is queried.
    eventually(
        lambda: terminal.count() and "stdout" in said,
        "the shell says something",
    )
    terminal.focus()
    expect(terminal).to_be_focused()
    page.keyboard.type(f"carrel submit {work.submit} --devices 1 --time 10m --group cs101")
    page.keyboard.press("Enter")

    def found() -> str | None:
        answer = person.site.api("GET", "/requests?kind=job", user=person.name).json()
        jobs = [request["id"] for request in answer["requests"]]
        return str(jobs[0]) if jobs else None

    try:
        return eventually(found, "a job of the command typed into the terminal")
    finally:
        person.picture(f"{chapter}terminal-of-student1")


def result(site: Installation, job: str, says: str) -> float:
    """As printed in the job's output notebook."""
    notebook = json.loads(site.cli("output", job, "-o", "-", user="student1").stdout)
    text = "".join(
        "".join(output.get("text", ""))
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    )
    found = re.search(says, text)
    assert found, text
    return float(found.group(1))
