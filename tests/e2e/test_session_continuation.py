"""A session near its time limit: warned, saved, and its notebook continued as a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from .browser import SESSION_MS, Person, chromium
from .support import eventually, installation
from .widget_pages import Notebook, write_notebook

USER = "student1"
HOURS = 0.06
"""A quarter of it is left at the warning."""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(600)
def test_a_notebook_is_continued_as_a_job_from_the_warning_before_the_time_limit(
    tmp_path: Path,
) -> None:
    with installation(tmp_path / "site", "--simulated-devices", "2") as site, chromium() as browser:
        folder = site.state / "homes" / USER / "deep"
        folder.mkdir()
        write_notebook(folder / "work.ipynb", "print('first')")
        person = Person.sits_down(browser, site, USER)
        person.sign_in()
        request = str(site.start_session(USER, "", hours=HOURS)["id"])
        site.wait_for(request, "running", user=USER)
        person.page.goto(f"{site.service}/wait/-")
        person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
        page = Notebook.open(person, "lab/tree", "deep/work.ipynb").page
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        page.keyboard.type("print('not saved by hand')")

        toast = page.locator(".Toastify__toast", has_text="Its time limit")
        expect(toast).to_be_visible(timeout=240_000)
        person.picture("time-limit-lab")
        toast.get_by_role("button", name="Continue as a job").click()
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("from its first cell")
        dialog.get_by_label("Time limit").fill("ten minutes or so")
        dialog.get_by_role("button", name="Submit the job").click()
        expect(dialog.get_by_role("alert")).to_contain_text("ten minutes or so")
        person.picture("continue-as-a-job")
        dialog.get_by_label("Time limit").fill("10m")
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
        assert "not saved by hand" in output

        person.page.goto(f"{site.service}/requests/{request}")
        person.picture("session-page")
        person.page.set_viewport_size({"width": 390, "height": 844})
        person.picture("session-page-390")
        person.page.get_by_role("link", name="Continue as a job").click()
        expect(person.page.locator("#labels")).to_have_value(f"continues={request}")
        eventually(lambda: site.request(request, user=USER)["ended"], "the session ends")
