"""Pages to submit, follow and find jobs."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from functools import partial

import pytest

from carrel.hub.errors import TooLarge
from carrel.hub.schemas import (
    EventOut,
    PipelineJobOut,
    PipelineLinkOut,
    PipelineOut,
    UtilizationSeriesOut,
)
from carrel.hub.schemas.programs.bodies import RunTimeOut
from carrel.hub.web.forms.job import JobForm
from carrel.hub.web.html.cell_output import content, settle, shown
from carrel.hub.web.pages.jobs.timeline import JobTimeline

from .....odd_notebooks import ODD
from ...fakes import NOW, PREFIX, World, device, job, lease, session, waiting
from ...page_checks import Page, check_page, text_of
from .samples import chosen

EVIL = "<script>parent.document.title='pwned'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def world() -> World:
    return World()


def test_a_preempted_request_is_queued_again_without_devices(world: World) -> None:
    released = lease(device(), id="j-aaaaaaaa.1", state="released").model_dump()
    world.service.put(job(wait=waiting(), lease=released, started_at=NOW - 90))
    why = "Stopped, as announced: cs101 reclaims devices."
    told = {"state": "preempted", "cause": {"code": "preempted", "message": why}}
    world.service.happen("j-aaaaaaaa", "state", told)
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    assert why in page
    for row in (page, world.browser().get(PREFIX).text):
        facts = re.search(r'class="(?:request|row)-facts">(.*?)</p>', row, re.DOTALL)
        assert facts is not None
        said = " ".join(text_of(facts.group(1)).split())
        assert "1 device" in said
        assert "submitted" in said
        assert "started" not in said


def test_jobs_that_wait_for_each_other_link_to_each_other(world: World) -> None:
    world.service.put(
        job(state="succeeded", ended=True, command=["make"]),
        job(id="j-bbbbbbbb", after=["j-aaaaaaaa:any"], state="queued", wait=waiting()),
    )
    page = world.browser().get(f"{PREFIX}requests/j-bbbbbbbb").text
    check_page(page)
    assert f'<a href="{PREFIX}requests/j-aaaaaaaa">j-aaaaaaaa</a> (however it ends)' in page
    html = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    feed = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa/feed?after=1&epoch=1").text
    for shown_there in (html, feed):
        assert f'<a href="{PREFIX}requests/j-bbbbbbbb">j-bbbbbbbb</a>' in shown_there


def test_the_page_draws_the_pipeline_and_lists_it(world: World) -> None:
    jobs = [("j-aaaaaaaa", "prepare", "succeeded"), ("j-bbbbbbbb", EVIL, "running"),
            ("j-cccccccc", "report", "queued")]  # fmt: skip  # rows
    links = [("j-aaaaaaaa", "j-bbbbbbbb", "ok"), ("j-bbbbbbbb", "j-cccccccc", "any")]
    found = PipelineOut(
        jobs=[
            PipelineJobOut(id=id_, name=name, state=state, owner="ada") for id_, name, state in jobs
        ],
        links=[PipelineLinkOut(first=one, then=two, kind=kind) for one, two, kind in links],  # type: ignore[arg-type]
        cut=True,
    )
    world.service.put(job(state="succeeded", ended=True))
    world.service.pipelines["j-aaaaaaaa"] = found
    address = f"{PREFIX}requests/j-aaaaaaaa"
    page = world.browser().get(address).text
    check_page(page)
    assert EVIL not in page
    assert page.count("<rect ") == page.count('class="job-arrow-head"') + 1 == 3
    assert page.count('aria-current="page"') == 1
    assert f'<a href="{PREFIX}requests/j-cccccccc">report</a>' in page
    text = " ".join(text_of(page).split())
    assert "(j-cccccccc): queued, after &lt;script&gt;parent" in text
    assert "The nearest 3 jobs: the pipeline has more." in text
    assert "A dashed arrow" in text
    assert "A dotted arrow" not in text
    feed = world.browser().get(f"{address}/feed?after=1").text
    assert '<div id="request-pipeline" hx-swap-oob="innerHTML">' in feed
    assert "<rect " in feed
    world.service.pipelines = {}
    assert "<rect " not in world.browser().get(address).text


def test_parameters_say_which_job_gave_them_and_change_live(world: World) -> None:
    origin = {"name": "lr", "job": "j-bbbbbbbb", "value": "best.lr"}
    world.service.put(job(state="queued", wait=waiting(), parameters={"n": 1}, results=[origin]))
    address = f"{PREFIX}requests/j-aaaaaaaa"
    page = world.browser().get(address).text
    check_page(page)
    assert "lr set when that job has ended j-bbbbbbbb , best.lr" in " ".join(text_of(page).split())
    found = origin | {"source": "j-cccccccc"}
    world.service.put(
        job(state="running", ended=True, parameters={"n": 1, "lr": 0.5}, results=[found])
    )
    for part in ("", "/feed?after=1"):
        html = world.browser().get(f"{address}{part}").text.replace("data: ", "")
        assert "n 1 lr 0.5 j-cccccccc , best.lr" in " ".join(text_of(html).split())
        assert f'<a href="{PREFIX}requests/j-cccccccc">j-cccccccc</a>' in html


def test_sources_are_beside_their_outputs_and_the_cause_links_to_its_cell(world: World) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Energy $E=mc^2$", "metadata": {}},
        {"cell_type": "code", "source": "print('<one>')", "metadata": {}, "outputs": []},
        {"cell_type": "markdown", "source": "The *end*", "metadata": {}},
    ]
    failed = {"code": "cell_error", "message": "error in cell 1: ValueError: no"}
    world.service.put(
        job(
            state="failed",
            notebook="train.ipynb",
            ended=True,
            cause=failed,
            lease=lease(device(), id="j-aaaaaaaa.1", state="released").model_dump(),
            parameters={"rate": 0.1},
        )
    )
    world.service.inputs["j-aaaaaaaa"] = json.dumps({"cells": cells, "metadata": {}}).encode()
    world.service.happen("j-aaaaaaaa", "cell_started", {"index": 1, "number": 1})
    error = {"output_type": "error", "ename": "ValueError", "evalue": "no",
             "traceback": ["\x1b[31mValueError\x1b[0m: <no>"]}  # fmt: skip
    world.service.happen("j-aaaaaaaa", "cell_output", {"number": 1, "output": error})
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa")
    check_page(page.text)
    assert '<a href="#cell-1-1">cell 1</a>: ValueError: no' in page.text
    assert 'id="cell-1-1"' in page.text
    assert '<span class="ansi-red">ValueError</span>: &lt;no&gt;' in page.text
    assert "&lt;one&gt;" in page.text
    assert "<h4>Energy <math" in page.text
    assert "<p>The <em>end</em></p>" in page.text
    assert page.text.index('id="parameters-title"') < page.text.index('id="cells-title"')


def test_a_job_whose_notebook_was_deleted_keeps_its_page(world: World) -> None:
    world.service.put(job(notebook="train.ipynb"))
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa")
    assert page.status_code == 200
    assert "The files of j-aaaaaaaa were deleted." in page.text


def used(**changes: object) -> UtilizationSeriesOut:
    values: dict[str, object] = {
        "epoch": 1,
        "begins_at": NOW - 90,
        "seconds": 5.0,
        "cores": [None, 0.5, 1.5],
        "memory_bytes": [1 << 30, 3 << 30, 2 << 30],
        "device_percent": [None, None, None],
        "device_bytes": [None, None, None],
        "mean_cores": 1.0,
        "peak_memory_bytes": 3 << 30,
        **changes,
    }
    return UtilizationSeriesOut.model_validate(values)


@pytest.mark.parametrize(
    ("code", "first_choice"), [("out_of_memory", "again-changed"), ("cell_error", "resume")]
)
def test_after_a_lack_of_memory_the_limit_is_changed_first(
    world: World, code: str, first_choice: str
) -> None:
    cause = {"code": code, "message": "It failed."}
    held = lease(device(), id="j-aaaaaaaa.1", state="released").model_dump()
    world.service.put(
        job(state="failed", ended=True, ended_at=NOW, started_at=NOW - 90, cause=cause, lease=held)
    )
    world.service.used["j-aaaaaaaa"] = [used()]
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    buttons = re.findall(r'class="btn btn-sm btn-primary"[^>]*id="(.*?)"', page)
    assert [each for each in buttons if each != "output"] == [first_choice]
    assert ("the peak that ended the job can be higher" in page) == (code == "out_of_memory")


def test_the_members_of_a_job_have_state_node_devices_and_a_log_each(world: World) -> None:
    ended = {"code": "command_failed", "message": "`work` exited with status 3"}
    members = [
        {"rank": 0, "role": "worker", "number": 0, "state": "running", "node": "node1",
         "devices": ["SIM-0"]},
        {"rank": 1, "role": "worker", "number": 1, "state": "failed", "node": "node2",
         "devices": [], "cause": ended},
    ]  # fmt: skip  # one member on two lines
    held = lease(device(), id="j-aaaaaaaa.1", members=members).model_dump()
    role = {"name": "worker", "command": ["work"], "devices": 1, "minimum": 1, "maximum": 2}
    world.service.put(
        job(state="running", command=["work"], notebook="", output="", lease=held, roles=[role])
    )
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa?member=1").text
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition('id="members"')[2], re.DOTALL)
    assert [" ".join(text_of(row).split()) for row in rows[1:3]] == [
        "0: worker 0 running node1 Simulated GPU #0 (simulated)",
        "1: worker 1 failed node2 none `work` exited with status 3",
    ]
    assert "1 to 2 members, 1 device each: work" in text_of(page)
    assert 'data-member="1"' in page
    assert "again-changed" not in page


def test_the_use_of_cpu_memory_and_devices_is_drawn_and_told(world: World) -> None:
    held = lease(device(simulated=True), id="j-aaaaaaaa.1").model_dump()
    world.service.put(job(state="running", started_at=NOW - 90, lease=held))
    world.service.used["j-aaaaaaaa"] = [used()]
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    check_page(page)
    assert "CPU over 15 s: 1.00 core on average; last 1.50 cores." in page
    assert "Memory over 15 s: 3.0 GiB at most; last 2.0 GiB." in page
    assert "Simulated devices: their use is not measured." in page

    real = lease(device(simulated=False), id="j-aaaaaaaa.1").model_dump()
    world.service.put(job(state="running", started_at=NOW - 90, lease=real))
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    assert "The driver does not report the use of these devices." in page
    busy = used(
        device_percent=[50.0, 90.0, 70.0], mean_device_percent=70.0,
        device_bytes=[1 << 30] * 3, peak_device_bytes=1 << 30,
    )  # fmt: skip
    world.service.used["j-aaaaaaaa"] = [busy]
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    assert "70 % on average, 1.0 GiB of device memory at most" in page


def test_a_job_that_was_not_measured_says_so(world: World) -> None:
    held = lease(id="j-aaaaaaaa.1", state="released").model_dump()
    world.service.put(job(state="succeeded", ended=True, started_at=NOW - 2, ended_at=NOW - 1,
                          lease=held))  # fmt: skip
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    assert "Nothing was measured: it ran for less than a few seconds." in page


def test_the_list_has_duration_cause_and_device_and_is_sorted(world: World) -> None:
    held = lease(device(simulated=True), id="j-aaaaaaaa.1", state="released").model_dump()
    failed = {"code": "cell_error", "message": "error in cell 1: ValueError: =no"}
    world.service.put(
        job(state="failed", ended=True, started_at=NOW - 400, ended_at=NOW - 100, cause=failed,
            lease=held, notebook="=train.ipynb"),
    )  # fmt: skip
    page = world.browser().get(f"{PREFIX}requests?kind=job")
    assert page.status_code == 200
    check_page(page.text)
    row = text_of(page.text)
    assert "5 min" in row
    assert "error in cell 1: ValueError: =no" in row
    assert "#0 (simulated)" in row
    assert 'aria-sort="descending"' in page.text
    assert "requests?kind=job&amp;whose=mine&amp;order=longest" in page.text

    world.browser().get(f"{PREFIX}requests?order=longest&cursor=j-aaaaaaaa")
    assert (world.service.wanted[-1].order, world.service.wanted[-1].cursor) == (
        "longest",
        "j-aaaaaaaa",
    )
    table = world.browser().get(f"{PREFIX}requests.csv?kind=job")
    assert table.headers["content-disposition"].startswith("attachment")
    (found,) = csv.DictReader(io.StringIO(table.text))
    assert (found["id"], found["duration_seconds"]) == ("j-aaaaaaaa", "300.0")
    assert found["title"] == "'=train.ipynb"
    assert found["message"] == "error in cell 1: ValueError: =no"
    assert world.service.wanted[-1].brief is False


def test_a_selected_notebook_adds_a_typed_field_per_parameter(world: World) -> None:
    html = world.own_page().post(f"{PREFIX}submit/inspect", files=chosen()).text
    for expected in ("parameter-lr", "learning rate", "whole number", "yes or no", "2 * 3"):
        assert expected in html, expected


def test_the_form_shows_the_predicted_run_time_of_the_notebook(world: World) -> None:
    assert "Run time:" not in world.own_page().post(f"{PREFIX}submit/inspect", files=chosen()).text
    world.service.predicted = RunTimeOut(
        seconds=60, low=50, high=70, suggested_seconds=120, sentence="About 1 min."
    )
    fields = {"group": "cs101", "time": "30m", "devices": "0"}
    html = world.own_page().post(f"{PREFIX}submit/inspect", data=fields, files=chosen()).text
    assert "Run time: About 1 min. Suggested time limit: 2 min." in html
    assert 'data-limit="2" data-unit="m">Use this limit</button>' in html


def test_the_form_submits_a_probe_instead_of_the_job(world: World) -> None:
    fields = {"group": "cs101", "time": "30m", "devices": "1", "parameter-lr": "0.5",
              "key": "k1", "advise": "yes"}  # fmt: skip  # grouped
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=chosen())
    assert answer.status_code == 303, answer.text
    body = world.service.calls[-1][2]
    assert body.notebook.name == "advice-train.ipynb"  # type: ignore[attr-defined]
    assert (body.devices, body.seconds) == (1, 120)  # type: ignore[attr-defined]
    assert body.idempotency_key == "k1-advice"  # type: ignore[attr-defined]
    assert "{'lr': 0.5}" in body.notebook.content  # type: ignore[attr-defined]
    command = fields | {"kind": "command", "command": "true"}
    refused = world.own_page().post(f"{PREFIX}submit", data=command)
    assert "Advice is for a job with a notebook" in refused.text


def test_a_script_with_cells_is_submitted_as_a_notebook(world: World) -> None:
    script = {"notebook": ("train.py", '# %% tags=["parameters"]\nlr = 0.1  # the rate\n')}
    html = world.own_page().post(f"{PREFIX}submit/inspect", files=script).text
    assert "parameter-lr" in html
    assert "train.ipynb" in html
    fields = {"group": "cs101", "time": "30m", "devices": "0", "parameter-lr": "0.5"}
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=script)
    assert answer.status_code == 303, answer.text
    body = world.service.calls[-1][2]
    assert body.notebook.name == "train.ipynb"  # type: ignore[attr-defined]
    assert body.parameters == {"lr": 0.5}  # type: ignore[attr-defined]
    wrong = {"notebook": ("train.py", b"x = '\xff'")}
    html = world.own_page().post(f"{PREFIX}submit/inspect", files=wrong).text
    assert "train.py is not UTF-8. Select a Jupyter notebook (.ipynb) or a Python script" in html


def test_a_job_of_the_form_gets_values_of_earlier_jobs(world: World) -> None:
    fields = {"group": "cs101", "time": "30m", "devices": "0", "after": "j-1",
              "results": "lr=j-1.best.lr 'n=j-1.report.the n'"}  # fmt: skip  # grouped
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=chosen())
    assert answer.status_code == 303, answer.text
    body = world.service.calls[-1][2]
    assert body.results == {"lr": "j-1.best.lr", "n": "j-1.report.the n"}  # type: ignore[attr-defined]
    refused = world.own_page().post(
        f"{PREFIX}submit", data=fields | {"results": "lr"}, files=chosen()
    )
    assert "Invalid results: &#39;lr&#39;. Such as lr=" in refused.text


def test_the_form_and_the_job_say_what_is_repaired_in_a_notebook(world: World) -> None:
    """Item 30."""
    content, repairs = ODD["collapsed in a code cell"]
    form = world.own_page().post(f"{PREFIX}submit/inspect", files=chosen(content)).text
    assert f"train.ipynb is repaired when you submit it: {repairs[0]}" in text_of(form)
    world.service.put(job(notes=list(repairs)))
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    assert f"Repaired {repairs[0]}" in text_of(page)


def test_a_submitted_notebook_becomes_a_job_with_what_was_changed(world: World) -> None:
    fields = {"group": "cs101", "time": "30m", "devices": "1", "labels": "sweep=7",
              "memory": "8GiB", "parameter-lr": "0.5", "parameter-n": "3"}  # fmt: skip  # grouped
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=chosen())
    assert answer.status_code == 303, answer.text
    body = world.service.calls[-1][2]
    assert body.parameters == {"lr": 0.5}  # type: ignore[attr-defined]
    assert (body.seconds, body.memory_bytes) == (1800, 8 * 2**30)  # type: ignore[attr-defined]
    assert body.labels == {"sweep": "7"}  # type: ignore[attr-defined]


def test_several_values_make_a_sweep_of_the_job(world: World) -> None:
    fields = {"group": "cs101", "time": "30m", "devices": "1", "sweep": "lr=0.1,0.2 n=1,2",
              "parallel": "2", "objective": "loss", "goal": "largest"}  # fmt: skip  # grouped
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=chosen())
    assert answer.status_code == 303, answer.text
    body = world.service.calls[-1][2]
    assert body.devices == 2  # type: ignore[attr-defined]
    sweep = body.sweep  # type: ignore[attr-defined]
    assert sweep.space == {"grid": {"lr": [0.1, 0.2], "n": [1, 2]}}
    assert (sweep.parallel, sweep.objective, sweep.maximize) == (2, "loss", True)
    wrong = world.own_page().post(
        f"{PREFIX}submit", data=fields | {"parallel": "x"}, files=chosen()
    )
    assert wrong.status_code == 400
    assert 'id="parallel-problem"' in wrong.text
    check_page(wrong.text)


def test_internet_access_is_a_choice_on_backends_that_can_block_it(world: World) -> None:
    page, label = world.own_page(), ">Internet<"
    assert label not in page.get(f"{PREFIX}submit").text
    world.service.backend.keeps_inside = True
    assert label in page.get(f"{PREFIX}submit").text
    page.post(f"{PREFIX}submit", data={"group": "cs101", "internet": "no"}, files=chosen())
    assert not world.service.calls[-1][2].internet  # type: ignore[attr-defined]
    world.service.found["j-aaaaaaaa"] = job(internet=False)
    assert "<dt>Internet</dt><dd>no access</dd>" in page.get(f"{PREFIX}requests/j-aaaaaaaa").text


def test_a_refused_form_keeps_everything_and_says_why_beside_the_field(world: World) -> None:
    fields = {"group": "cs101", "time": "soon", "parameter-lr": "0.7", "labels": "a=b"}
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=chosen())
    assert answer.status_code == 400
    check_page(answer.text)
    for expected in ('id="time-wrong"', 'value="soon"', 'value="0.7"', 'value="a=b"'):
        assert expected in answer.text, expected
    wrong = world.own_page().post(
        f"{PREFIX}submit", data=fields | {"time": "1h", "parameter-lr": "x"}, files=chosen()
    )
    assert 'id="parameter-lr-problem"' in wrong.text


@pytest.mark.parametrize("page", ["", "desk/live", "requests/j-aaaaaaaa"])
def test_a_preemption_notice_is_shown_with_its_time(world: World, page: str) -> None:
    asked = "lab reclaims devices. This request is then queued again at its old position."
    warning = {"stops_at": NOW + 120, "message": asked, "can_keep": False, "final": True}
    world.service.put(job(state="running", warning=warning))
    html = text_of(world.own_page().get(PREFIX + page).text)
    assert html.index("It stops in") < html.index(asked)  # followed by what happens then


def test_a_form_of_another_site_submits_nothing(world: World) -> None:
    answer = world.browser().post(f"{PREFIX}submit", data={"group": "cs101"}, files=chosen())
    assert answer.status_code == 403
    assert world.service.calls == []


def test_the_page_shows_every_cell_from_the_start_and_nothing_foreign_runs(world: World) -> None:
    world.service.put(job(state="running", lease=lease(id="j-aaaaaaaa.1").model_dump()))

    def happen(kind: str, **data: object) -> None:
        world.service.happen("j-aaaaaaaa", kind, {"index": 0, "number": 1, **data})

    happen("cell_started")
    happen("cell_output", output={"output_type": "stream", "name": "stdout", "text": EVIL})
    happen("cell_output", output={"output_type": "display_data", "data": {"text/html": EVIL}})
    happen("cell_failed", ename="E", evalue="no", traceback="Traceback of it")
    happen("cell_finished", seconds=1.5)
    html = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    page = check_page(html)
    assert [frame["sandbox"] for frame in page.all("iframe")] == [""]
    for expected in ("Traceback of it", "1.50 s", "failed", "after=5&amp;epoch=1"):
        assert expected in html, expected
    answer = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa/outputs/3")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (
        world.browser("ben-oauth").get(f"{PREFIX}requests/j-aaaaaaaa/outputs/3").status_code == 404
    )


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_cell_does_not_run_on_when_its_job_is_over(world: World, interrupted: bool) -> None:
    world.service.put(
        job(state="cancelled", ended=True, lease=lease(id="j-aaaaaaaa.1").model_dump())
    )
    happen = partial(world.service.happen, "j-aaaaaaaa")
    happen("cell_started", {"index": 0, "number": 1})
    if interrupted:
        told = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": "A trace"}
        happen("cell_failed", {"index": 0, "number": 1, **told})
    happen("state", {"state": "cancelled"})
    html = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    feed = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa/feed?after=1&epoch=1").text
    for shown_there in (html, feed):
        assert 'cell-state">stopped<' in shown_there
        assert 'cell-state">running<' not in shown_there
        assert "A trace" not in shown_there


def test_a_continued_stream_is_one_text() -> None:
    assert settle("a\r b\r\nc\r") == (" b\nc", False)
    first = shown(1, {"output_type": "stream", "name": "stderr", "text": "10%"})
    assert first is not None
    assert first.name == "stderr"
    assert JobTimeline.of([]).epoch == 0
    assert content({"output_type": "stream", "text": "x"}) is None


def test_a_job_s_page_says_what_was_cut_when_it_began_and_in_all() -> None:
    found = [
        EventOut(id=n, request_id="j-1", epoch=1, at=1.0, kind="cut", data=data)
        for n, data in enumerate(
            [
                {"what": "output", "bytes": 500},
                {"what": "output", "bytes": 3 << 30, "all": True},
                {"what": "<b>" * 2},
            ]
        )
    ]
    cuts = JobTimeline.of(found).attempts[1].cuts
    assert cuts == ["Cut: output (500 bytes).", "Cut in all: output (3 GiB).", "Cut: <b><b>."]


def test_the_list_pages_and_cancels_in_bulk_after_a_question(world: World) -> None:
    world.service.put(*[job(id=f"j-{n:08d}", labels={"sweep": "7"}) for n in range(230)])
    first = world.browser().get(f"{PREFIX}requests?label=sweep%3D7&state=live").text
    check_page(first)
    assert first.count('name="id"') == 100
    assert 'id="next"' in first
    page, fields = world.own_page(), {"which": "all", "label": "sweep=7"}
    asked = page.post(f"{PREFIX}requests/cancel", data=fields).text
    assert "Cancel 230 requests?" in asked
    assert world.service.calls == []
    page.post(f"{PREFIX}requests/cancel", data=fields | {"confirmed": "yes"})
    assert len(world.service.calls) == 230


def test_the_explanation_is_outside_the_streamed_part(world: World) -> None:
    world.service.put(
        job(id="j-waits", state="queued", wait=waiting(2)),
        session(id="s-waits", server_name="gpu", state="queued", wait=waiting(3)),
    )
    for page, redrawn in (("requests/j-waits", "request-state"), ("wait/gpu", "wait-status")):
        html = world.browser().get(f"{PREFIX}{page}").text
        depth, inside = 0, html.partition(f'id="{redrawn}"')[2].partition(">")[2]
        for tag in re.finditer(r"<(/?)div\b", inside):
            depth += -1 if tag[1] else 1
            if depth < 0:
                inside = inside[: tag.start()]
                break
        assert "Queued at position" in inside
        assert "/why" not in inside, "the stream would ask for it again at each change"
        (why,) = [each for each in Page(html).all("div") if each.get("hx-get", "").endswith("/why")]
        assert (why["hx-trigger"], why["data-pause"]) == ("load, refresh, every 30s", "5000")


@pytest.mark.parametrize(
    ("deadline", "zone", "expected"),
    [
        ("2030-06-01 18:00", "Europe/Berlin", datetime(2030, 6, 1, 16, tzinfo=UTC)),
        ("2030-06-01 18:00", "", datetime(2030, 6, 1, 18, tzinfo=UTC)),
        ("2030-06-01T18:00+05:30", "Europe/Berlin", datetime(2030, 6, 1, 12, 30, tzinfo=UTC)),
        ("", "Europe/Berlin", None),
    ],
    ids=["the browser's zone", "without script", "with its offset", "none"],
)
def test_a_deadline_is_read_in_the_zone_of_the_browser(
    deadline: str, zone: str, expected: datetime | None
) -> None:
    form = JobForm(kind="command", command="true", group="cs101", deadline=deadline, zone=zone)
    assert form.job(NOW).deadline == (expected.timestamp() if expected else None)


def test_a_deadline_may_be_a_duration_from_now() -> None:
    form = JobForm(kind="command", command="true", group="cs101", deadline="6h")
    assert form.job(NOW).deadline == NOW + 6 * 3600


@pytest.mark.parametrize(
    ("deadline", "zone", "at", "said"),
    [
        ("tomorrow", "Europe/Berlin", "deadline", "Invalid time: &#39;tomorrow&#39;."),
        (
            "2030-06-01T18:00",
            "Middle/Earth",
            "zone",
            "There is no time zone &#39;Middle/Earth&#39;.",
        ),
    ],
)
def test_an_invalid_deadline_is_refused_beside_its_field(
    world: World, deadline: str, zone: str, at: str, said: str
) -> None:
    fields = {"group": "cs101", "time": "30m", "deadline": deadline, "zone": zone}
    answer = world.own_page().post(f"{PREFIX}submit", data=fields, files=chosen())
    assert answer.status_code == 400
    check_page(answer.text)
    problem = answer.text.partition(f'id="{at}-wrong"')[2].partition("</div>")[0]
    assert said in problem
    for typed in (deadline, zone):
        assert f'value="{typed}"' in answer.text


def test_where_output_is_cut_the_page_links_to_the_log_that_has_what_was_printed() -> None:
    world = World()
    world.service.put(job(state="running", lease=lease(id="j-aaaaaaaa.1").model_dump()))
    world.service.happen("j-aaaaaaaa", "cell_started", {"index": 0, "number": 1})
    world.service.happen("j-aaaaaaaa", "cut", {"what": "output", "bytes": 500})
    page = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa").text
    address = f"{PREFIX}api/v1/requests/j-aaaaaaaa/log"
    sentence = f'What cells printed is in the <a href="{address}">log</a>.'
    assert f"<li>Cut: output (500 bytes). {sentence}</li>" in page


def test_the_panel_of_a_sweep_says_why_its_notebook_cannot_be_analysed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TooLarge("The notebook could not be analysed.", accepted="Analyse it elsewhere.")

    monkeypatch.setattr(type(world.service), "sharing", refuse, raising=False)
    answer = world.browser().get(f"{PREFIX}requests/j-aaaaaaaa/sharing")
    assert answer.status_code == 200, "the script shows no other answer"
    assert "could not be analysed. Analyse it elsewhere." in text_of(answer.text)
