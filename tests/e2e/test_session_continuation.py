"""A session near its time limit: warned, saved, and its notebook continued as a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .browser import SESSION_MS, Person, chromium
from .support import Installation, eventually, installation
from .widget_pages import Notebook, write_notebook

USER = "student1"
HOURS = 0.06
"""A quarter of it is left at the warning."""


def execute_the_first_and_edit_the_last_cell(page: Page) -> None:
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".jp-CodeCell").first).to_contain_text("loaded", timeout=60_000)
    page.locator(".jp-CodeCell .cm-content").last.click()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("print('not saved by hand')")


def saved_states(folder: Path) -> list[Path]:
    return list((folder / ".local" / "share" / "carrel" / "continuations").iterdir())


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(600)
def test_a_notebook_is_continued_as_a_job_from_the_warning_before_the_time_limit(
    tmp_path: Path,
) -> None:
    with installation(tmp_path / "site", "--simulated-devices", "2") as site, chromium() as browser:
        folder = site.state / "homes" / USER / "deep"
        folder.mkdir()
        loads = "import threading\nlock, first = threading.Lock(), 40 + 2\nprint('loaded')"
        write_notebook(folder / "work.ipynb", loads, "print(first)")
        person = Person.sits_down(browser, site, USER)
        person.sign_in()
        request = str(site.start_session(USER, "", hours=HOURS)["id"])
        site.wait_for(request, "running", user=USER)
        person.page.goto(f"{site.service}/wait/-")
        person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
        page = Notebook.open(person, "lab/tree", "deep/work.ipynb").page
        execute_the_first_and_edit_the_last_cell(page)
        toast = page.locator(".Toastify__toast", has_text="Its time limit")
        expect(toast).to_be_visible(timeout=240_000)
        person.picture("time-limit-lab")
        toast.get_by_role("button", name="Continue as a job").click()
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("goes on from cell 2 of 2")
        expect(dialog).to_contain_text("lock (TypeError: cannot pickle")
        dialog.get_by_role("button", name="Cancel").click()
        eventually(lambda: not saved_states(folder.parent), "the state is deleted")
        toast.get_by_role("button", name="Continue as a job").click()
        dialog.get_by_label("Time limit", exact=True).fill("ten minutes or so")
        dialog.get_by_role("button", name="Submit the job").click()
        expect(dialog.get_by_role("alert")).to_contain_text("ten minutes or so")
        person.picture("continue-as-a-job")
        dialog.get_by_label("Time limit", exact=True).fill("10")
        dialog.get_by_label("Unit of time limit").select_option("minutes")
        dialog.get_by_role("button", name="Submit the job").click()
        done = page.locator(".Toastify__toast", has_text="Submitted as job")
        expect(done).to_be_visible()
        jobs = site.api("GET", "/requests?kind=job", user=USER).json()["requests"]
        (job,) = jobs
        assert job["labels"] == {"continues": request}
        assert (job["seconds"], job["devices"], job["group"]) == (600, 1, "cs101")
        assert job["workdir"] == "deep"
        site.wait_for(job["id"], "succeeded", user=USER)
        output = site.api("GET", f"/requests/{job['id']}/output", user=USER).text
        last = json.loads(output)["cells"][-1]
        assert "".join(last["outputs"][0]["text"]) == "42\nnot saved by hand\n"
        log = site.api("GET", f"/requests/{job['id']}/log", user=USER).text
        assert "the job goes on after 1 cell of an earlier execution" in log
        assert "loaded" not in log
        assert saved_states(folder.parent) == []
        shows_the_session(person, site, request)


def shows_the_session(person: Person, site: Installation, request: str) -> None:
    person.page.goto(f"{site.service}/requests/{request}")
    person.picture("session-page")
    person.page.set_viewport_size({"width": 390, "height": 844})
    person.picture("session-page-390")
    person.page.get_by_role("link", name="Continue as a job").click()
    expect(person.page.locator("#labels")).to_have_value(f"continues={request}")
    eventually(lambda: site.request(request, user=USER)["ended"], "the session ends")
