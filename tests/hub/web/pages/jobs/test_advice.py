"""A probe from the submit page: its page shows the advice, and its form submits the job with it."""

from __future__ import annotations

import json
import re

import pytest

from carrel.hub.schemas import JobIn

from ...fakes import PREFIX, World, job
from ...page_checks import check_page, text_of
from .samples import NOTEBOOK, chosen

PROBE = "j-aaaaaaaa"
FIELDS = {"group": "cs101", "time": "3h", "devices": "1", "parameter-lr": "0.5", "retries": "2"}
ADVICE = {
    "sentences": ["Now: batch 16.", "<b>Fastest</b>: batch 64."],
    "parameters": {"n": 64, "fast": False},
    "run_seconds": 120.0,
}


@pytest.fixture
def world() -> World:
    """A probe that the form has submitted, and that has succeeded with its advice."""
    made = World()
    form = FIELDS | {"advise": "yes", "labels": "kind=baseline"}
    assert made.own_page().post(f"{PREFIX}submit", data=form, files=chosen()).status_code == 303
    body = made.service.calls[-1][2]
    assert isinstance(body, JobIn)
    made.service.submitted_jobs[PROBE] = body
    made.service.written[PROBE, "advice.json"] = json.dumps(ADVICE).encode()
    show(made, state="succeeded")
    return made


def show(world: World, **fields: object) -> None:
    body = world.service.submitted_jobs[PROBE]
    assert body.notebook is not None
    ended = fields.get("state") != "running"
    world.service.put(
        job(notebook=body.notebook.name, labels=body.labels, ended=ended, command=[], **fields)
    )


def page(world: World) -> str:
    found = world.browser().get(f"{PREFIX}requests/{PROBE}").text
    check_page(found)
    return found


def test_the_page_of_a_probe_shows_its_advice(world: World) -> None:
    shown = page(world)
    assert "<li>&lt;b&gt;Fastest&lt;/b&gt;: batch 64.</li>" in shown
    assert "Submit train.ipynb with the fastest settings" in shown
    assert f"submit?advice={PROBE}" in shown
    # The notebook of the probe is not what the student wants to change.
    assert "again-changed" not in shown


def test_the_form_has_the_job_that_was_probed_with_the_fastest_settings(world: World) -> None:
    shown = world.browser().get(f"{PREFIX}submit?advice={PROBE}").text
    check_page(shown)
    said = text_of(shown)
    assert f"By the advice of {PROBE}: n = 64, fast = false." in said
    assert "The run is predicted to take about 2 min" in said
    form = FIELDS | {"source": f"advice:{PROBE}", "parameter-n": "64", "time": "5m"}
    answer = world.own_page().post(f"{PREFIX}submit", data=form)
    assert answer.status_code == 303, answer.text
    body = world.service.calls[-1][2]
    assert isinstance(body, JobIn)
    assert body.notebook is not None
    assert body.notebook.name == "train.ipynb"
    assert json.loads(body.notebook.content)["cells"] == json.loads(NOTEBOOK)["cells"]
    assert body.parameters == {"lr": 0.5, "n": 64}


def test_the_jobs_own_time_limit_is_kept_if_it_is_longer(world: World) -> None:
    shown = world.browser().get(f"{PREFIX}submit?advice={PROBE}").text
    assert 'name="time" value="3"' in shown
    assert "a time limit of 4 min is above that" in text_of(shown)
    assert re.search(r'id="retries"[^>]*value="2"', shown)


def test_a_time_limit_below_the_predicted_run_time_is_raised(world: World) -> None:
    content = json.dumps(ADVICE | {"run_seconds": 36_000.0}).encode()
    world.service.written[PROBE, "advice.json"] = content
    shown = world.browser().get(f"{PREFIX}submit?advice={PROBE}").text
    value = re.search(r'name="time" value="(\d+)"', shown)
    assert value is not None
    assert int(value[1]) > 10


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[]", "This job has left no advice."),
        (b'{"sentences": 3}', "This job has left no advice."),
        (b"\xff", "This job has left no advice."),
        (b'{"sentences": [], "parameters": {"n": [1]}, "run_seconds": NaN}', "Submit train.ipynb"),
    ],
)
def test_a_file_that_is_no_advice_is_said(world: World, content: bytes, said: str) -> None:
    world.service.written[PROBE, "advice.json"] = content
    assert said in page(world)
    form = world.browser().get(f"{PREFIX}submit?advice={PROBE}")
    assert form.status_code == 200
    assert 'name="time" value="3"' in form.text


def test_a_probe_that_has_failed_leads_to_the_job_as_it_was(world: World) -> None:
    show(world, state="failed")
    shown = page(world)
    assert "There is no advice: the reason is above." in shown
    assert "Change train.ipynb and submit" in shown
    form = text_of(world.browser().get(f"{PREFIX}submit?advice={PROBE}").text)
    assert f"{PROBE} has found no advice" in form


def test_the_page_of_a_running_probe_says_when_the_advice_comes(world: World) -> None:
    show(world, state="running", seconds=120)
    assert "It appears here when the measurements have ended: after at most 2 min" in page(world)


def test_a_job_that_is_no_probe_has_no_advice(world: World) -> None:
    world.service.put(job(id="j-bbbbbbbb", labels={"advice": "x"}, command=["true"]))
    assert "advice-title" not in world.browser().get(f"{PREFIX}requests/j-bbbbbbbb").text
    answer = world.browser().get(f"{PREFIX}submit?advice=j-bbbbbbbb")
    assert answer.status_code == 400
    assert "The job that was probed cannot be read from its probe." in text_of(answer.text)
