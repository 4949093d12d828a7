"""A job in a real browser: submitted by form, followed, lost, found, cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from .browser import SESSION_MS, Person, chromium, take_picture
from .support import Installation, installation
from .widget_pages import Notebook, save, shows, write_notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]
"""Its steps one by one are in test_widgets.py and test_job_pages.py."""

DAY = "day.ipynb"
FORM, NEWEST, SECOND = range(3)
CELLS = (
    "import carrel\ncarrel.SubmitForm('digits.ipynb')",
    "import carrel\ncarrel.JobView()",
    "carrel.SubmitForm('slow.ipynb')",
)
SLOW = (
    "print('the first cell is done')",
    "import time\nprint('in the middle', flush=True)\ntime.sleep(300)",
    "print('never reached')",
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "state", "--simulated-devices", "1") as made:
        yield made


def test_a_job_is_submitted_followed_found_and_cancelled(site: Installation) -> None:
    home = site.state / "homes" / "student1"
    with chromium() as browser:
        first = Person.sits_down(browser, site, "student1")
        first.sign_in()
        first.start(0)
        first.page.wait_for_url("**/user/student1/lab**", timeout=SESSION_MS)
        write_notebook(home / DAY, *CELLS)
        write_notebook(home / "slow.ipynb", *SLOW)

        job = submits_the_digits_and_watches(first)
        first.page.context.close()  # the browser closes in the middle of a cell

        again = Person.sits_down(browser, site, "student1")
        again.sign_in()
        notebook = comes_back_to_everything(again, site, job)
        restarts_the_kernel_and_attaches_again(notebook, job)
        second = cancels_a_second_job_in_the_middle_of_a_cell(notebook)
        opens_the_partial_notebook(notebook, second)

        assert site.wait_for(second, "cancelled", user="student1")["cause"]["code"] == "cancelled"
        student2_sees_nothing(browser, site, job, second)
        assert [*first.complaints, *again.complaints] == []


def submits_the_digits_and_watches(person: Person) -> str:
    notebook = Notebook.open(person, "lab/tree", DAY)
    notebook.run(FORM)
    page = notebook.page
    page.get_by_label("epochs").fill("500")
    page.get_by_label("seed").fill("7")
    page.get_by_label("Devices").fill("1")
    page.get_by_label("Time limit").fill("10m")
    person.picture("story-job-1-form")
    page.get_by_role("button", name="Submit").click()
    shows(notebook.view, "cell 4 runs", within=150)
    shows(notebook.view, "(simulated)")
    shows(notebook.view, "epoch 5: loss")
    expect(notebook.view.get_by_title("Cell 1: done")).to_be_attached()
    notebook.view.scroll_into_view_if_needed()
    person.picture("story-job-2-watched")
    save(page)
    return notebook.job()


def comes_back_to_everything(person: Person, site: Installation, job: str) -> Notebook:
    """The kernel and its views have survived; the job is not affected."""
    notebook = Notebook.open(person, "lab/tree", DAY)
    assert notebook.job() == job
    shows(notebook.view, "epoch 5: loss")
    shows(notebook.view, "succeeded", within=180)
    shows(notebook.view, "5 of 5 cells")
    shows(notebook.view, "accuracy")
    parameters = site.request(job, user="student1")["parameters"]
    assert parameters == {"epochs": 500, "seed": 7}
    notebook.view.scroll_into_view_if_needed()
    person.picture("story-job-3-back")
    return notebook


def restarts_the_kernel_and_attaches_again(notebook: Notebook, job: str) -> None:
    notebook.restart_kernel_by_hand()
    expect(notebook.view.locator(".carrel-detached")).to_contain_text("Detached")
    notebook.run(NEWEST)
    expect(notebook.page.locator(".carrel-job")).to_have_count(2)
    assert notebook.job() == job
    shows(notebook.view, "5 of 5 cells")
    shows(notebook.view, "accuracy")  # everything, from the stored events


def cancels_a_second_job_in_the_middle_of_a_cell(notebook: Notebook) -> str:
    page = notebook.page
    notebook.run(SECOND)
    submit = page.get_by_role("button", name="Submit")
    expect(submit).to_have_count(2)  # the older one lost its kernel
    submit.last.click()
    expect(page.locator(".carrel-job")).to_have_count(3)
    shows(notebook.view, "cell 2 runs", within=150)
    shows(notebook.view, "in the middle")
    notebook.cancel_by_mouse()
    shows(notebook.view, "Cancelled by its owner.")
    expect(notebook.view.locator(".carrel-state")).to_have_text("cancelled")
    notebook.view.scroll_into_view_if_needed()
    notebook.person.picture("story-job-4-cancelled")
    return notebook.job()


def opens_the_partial_notebook(notebook: Notebook, job: str) -> None:
    with notebook.page.expect_popup() as opened:
        notebook.view.get_by_role("link", name="Page of this job").click()
    page = opened.value
    expect(page.locator("body")).to_contain_text(job)
    page.get_by_role("link", name="Read the notebook").click()
    written = page.frame_locator("iframe.notebook-frame").locator("body")
    expect(written).to_contain_text("the first cell is done")
    expect(written).to_contain_text("in the middle")
    take_picture(page, "story-job-5-partial")
    page.close()


def student2_sees_nothing(browser: Browser, site: Installation, *jobs: str) -> None:
    other = Person.sits_down(browser, site, "student2")
    other.sign_in()
    expect(other.page.locator("body")).not_to_contain_text("digits.ipynb")
    for job in jobs:
        pages = [f"/requests/{job}{rest}" for rest in ("", "/feed", "/notebook/content")]
        calls = [f"/api/v1/requests/{job}{rest}" for rest in ("", "/events", "/log", "/output")]
        for path in (*pages, *calls):
            answer = other.page.goto(site.service + path)
            assert answer is not None
            assert answer.status == 404, path
            assert "student1" not in other.page.content(), path
    other.page.goto(f"{site.service}/requests")
    for shown in (*jobs, "digits.ipynb", "slow.ipynb"):
        expect(other.page.locator("body")).not_to_contain_text(shown)
    assert other.complaints == []
