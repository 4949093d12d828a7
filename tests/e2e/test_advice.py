"""A student asks for advice, submits with it, and sees the estimate of the job narrow by cells.

Updates of the notebook sleep: the fastest batch does not depend on the machine.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from carrel.hub.client.probe_job import probe_job
from carrel.hub.schemas import JobIn

from .browser import SESSION_MS, Person, another_page, take_picture
from .support import Installation
from .widget_pages import submit, write_notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

USER = "student1"
PARAMETERS = "batch_size = 16  # samples of one update\nrate = 0.1  # of learning"
DEFINITIONS = """\
import time
import carrel
samples, epochs, stages = 2048, 800, 4
done = 0"""
STAGE = """\
for epoch in range(epochs // stages):
    for first in range(0, samples, batch_size):
        time.sleep(0.01 + 1e-5 * min(batch_size, samples - first))
    done += 1
    carrel.progress(done, epochs)"""
PROBE_MS = 180_000.0
STAGES = 4


def looks(page: Page, name: str) -> None:
    """Take screenshots in light, dark and phone width."""
    usual = page.viewport_size
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        take_picture(page, f"advice-{name}-{theme}", full_page=True, animations="disabled")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    take_picture(page, f"advice-{name}-phone", full_page=True, animations="disabled")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if usual is not None:
        page.set_viewport_size(usual)


def job_of(page: Page) -> str:
    page.wait_for_url(re.compile(r"/requests/j-\w+$"))
    return page.url.rpartition("/")[2]


def state_is(page: Page, state: str, *, within_ms: float = SESSION_MS) -> None:
    expect(page.locator("#request-state")).to_contain_text(state, timeout=within_ms)


def test_a_student_submits_with_advice_and_sees_the_estimate_narrow(
    site: Installation, person: Person
) -> None:
    notebook = site.state / "homes" / USER / "train.ipynb"
    write_notebook(notebook, DEFINITIONS, *[STAGE] * STAGES, parameters=PARAMETERS)
    page = person.page
    probe = asks_for_advice(page)
    looks(page, "measures")
    state_is(page, "succeeded", within_ms=PROBE_MS)
    advice = page.locator("#request-advice")
    expect(advice).to_contain_text("Fastest: batch")
    expect(advice).to_contain_text("changes what is learned")
    looks(page, "found")

    with another_page(page):
        page.click("#use-advice")
    batch = int(page.get_by_label("batch_size").input_value())
    assert batch > 16
    expect(page.locator("#chosen")).to_contain_text(f"train.ipynb as it was measured by {probe}")
    expect(page.locator("main")).to_contain_text(f"By the advice of {probe}: batch_size = {batch}")
    looks(page, "form")
    page.click("#submit")
    first = job_of(page)
    found = site.request(first, user=USER)
    assert (found["parameters"], found["notebook"]) == ({"batch_size": batch}, "train.ipynb")
    # Runs beside it, from which the estimates come.
    others = [submit(site, notebook, parameters={"batch_size": batch}) for _ in range(2)]
    for each in (first, *others):
        site.wait_for(each, "succeeded", user=USER, within=180)

    with another_page(page):
        page.click("#again-changed")
    suggested = page.locator("#run-time")
    expect(suggested).to_contain_text("Suggested time limit")
    page.click("#use-limit")
    limit = int(page.locator("#time").input_value())
    expect(suggested).to_contain_text(f"Suggested time limit: {limit} min")
    looks(page, "suggested")
    page.click("#submit")
    second = job_of(page)
    assert site.request(second, user=USER)["seconds"] == 60 * limit
    narrows(page)
    state_is(page, "succeeded")
    assert site.request(second, user=USER)["state"] == "succeeded"


def asks_for_advice(page: Page) -> str:
    """Select the notebook in the home, and ask; return the id of the probe job."""
    with another_page(page):
        page.get_by_role("link", name="Submit", exact=True).click()
    page.get_by_role("button", name="train.ipynb").click()
    expect(page.get_by_label("batch_size")).to_have_value("16")
    page.click("#advise")
    probe = job_of(page)
    expect(page.locator("#request-advice")).to_contain_text("It appears here")
    expect(page.locator(".step")).to_contain_text("seconds of the probe, which measures batch")
    return probe


def narrows(page: Page) -> None:
    """The interval of the remaining time becomes narrower with the stages; its ends are rounded."""
    widths = []
    for number in range(STAGES):
        state = page.locator("#request-state")
        expect(state).to_contain_text(f"running cell {3 + number}", timeout=SESSION_MS)
        shown = page.locator(".remaining")
        expect(shown).to_contain_text("by the same cells of 3 earlier jobs")
        take_picture(page, f"advice-stage-{number}")
        widths.append(width(shown.inner_text()))
    assert all(then <= 1.05 * before for before, then in pairwise(widths)), widths
    assert widths[-1] < widths[0] / 2


def width(sentence: str) -> float:
    """Return the width of the interval of a sentence in seconds; 0 of one without."""
    found = re.search(r"\((.+?) to (.+?)\)", sentence)
    return seconds(found[2]) - seconds(found[1]) if found else 0.0


def seconds(text: str) -> float:
    units = {"s": 1, "min": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"(\d+) (s|min|h)", text))


BAD = {
    "fails": ("batch_size = 16", "1 / 0", "ZeroDivisionError: division by zero."),
    "endless": ("batch_size = 16", "while True: pass", "it neither ended nor called carrel.pro"),
    "zero": ("batch_size = 0", "pass", "The parameter batch_size is 0: no run has such a batch."),
}
GOOD = {
    "batchless": ("n = 1", "pass", "There is no batch to vary"),
    "writes": ("n = 1", "open('model.bin', 'w').close()", "The runs of the probe wrote model.bin"),
}


def test_a_probe_that_cannot_advise_says_why(
    site: Installation, person: Person, tmp_path: Path
) -> None:
    probes = {}
    for name, (parameters, cell, _) in (BAD | GOOD).items():
        notebook = tmp_path / f"{name}.ipynb"
        write_notebook(notebook, cell, parameters=parameters)
        content = {"name": notebook.name, "content": notebook.read_text()}
        body = {"group": "cs101", "idempotency_key": name, "notebook": content}
        probe = probe_job(JobIn.model_validate(body), budget=40)
        answer = site.api("POST", "/requests", user=USER, json=probe.model_dump(mode="json"))
        assert answer.status_code == 201, answer.text
        probes[name] = str(answer.json()["id"])
    page = person.page
    for name, (_, _, said) in (BAD | GOOD).items():
        site.wait_for(probes[name], "failed", "succeeded", user=USER)
        page.goto(f"{site.service}/requests/{probes[name]}")
        place = "#request-state" if name in BAD else "#request-advice"
        state_is(page, "failed" if name in BAD else "succeeded")
        expect(page.locator(place)).to_contain_text(said)
        expect(page.locator("main")).not_to_contain_text("notebook_probe.py")
        looks(page, name)
        with another_page(page):
            page.click("#use-advice")
        expect(page.locator("#chosen")).to_contain_text(f"{name}.ipynb as it was measured")
