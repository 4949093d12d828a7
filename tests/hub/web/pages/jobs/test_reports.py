"""Reported values and the trials of a sweep on the page of a job."""

from __future__ import annotations

import re

import pytest

from carrel.hub.results.curve import curve
from carrel.hub.schemas import FileOut, FilesOut
from carrel.hub.schemas.sweeps import (
    AcceleratedFunctionOut,
    CompilationObstacleOut,
    ReportOut,
    ReportsOut,
    SweepOut,
    TrialOut,
    TrialsOut,
)

from ...fakes import NOW, PREFIX, World, device, job, lease
from ...page_checks import check_page, text_of

PAGE = f"{PREFIX}requests/j-aaaaaaaa"
RUNNING = {"state": "running", "started_at": NOW - 90}


@pytest.fixture
def world() -> World:
    return World()


def test_reported_values_are_drawn_with_a_text_for_those_who_cannot_see(world: World) -> None:
    world.service.put(job(lease=lease(device()), **RUNNING))
    loss = ReportOut(
        name="loss", steps=[0, 5, 10], values=[2.0, None, 0.5], last=0.5, least=0.5, most=2.0
    )
    single = ReportOut(name="<b>acc", steps=[0], values=[None], last=None, least=None, most=None)
    world.service.reported["j-aaaaaaaa"] = ReportsOut(reports=[loss, single])
    page = world.browser().get(PAGE).text
    check_page(page)
    assert "loss from step 0 to 10: last 0.5, from 0.5 to 2." in page
    assert 'd="M0.00 0.00h.01M1000.00 100.00h.01"' in page
    assert "&lt;b&gt;acc" in page
    assert "last not a number" in page


def test_accelerated_functions_are_shown_with_the_lines_that_prevent_it(world: World) -> None:
    world.service.put(job(lease=lease(device()), **RUNNING))
    line = CompilationObstacleOut(
        place="Cell In[3], line 5",
        source="if x.sum() < 0:",
        reason="breaks the graph",
        rewrite="Use torch.where.",
    )
    function = AcceleratedFunctionOut(
        function="<b>step", place="Cell In[3], line 1", outcome="Executed plainly.",
        obstacles=[line],
    )  # fmt: skip
    loaded = ["Loaded 2 compiled graphs of your job j-<b>, of which 2 were used."]
    reported = ReportsOut(reports=[], compilations=[function], compile_cache=loaded)
    world.service.reported["j-aaaaaaaa"] = reported
    page = world.browser().get(PAGE).text
    check_page(page)
    assert "&lt;b&gt;step" in page
    assert "if x.sum() &lt; 0:</code>: breaks the graph. Use torch.where." in page
    assert "Loaded 2 compiled graphs of your job j-&lt;b&gt;" in page


def test_values_whose_distance_is_infinite_are_drawn() -> None:
    drawn = curve("x", "loss", "", [0, 1, 2], [1.7e308, -1.7e308, 0.0])
    assert drawn is not None
    assert drawn.line == "M0.00 0.00L500.00 100.00L1000.00 50.00"


def test_a_job_that_reports_nothing_has_no_section_for_it(world: World) -> None:
    world.service.put(job(lease=lease(device()), **RUNNING))
    assert "Reported values" not in world.browser().get(PAGE).text


def trial(number: int, state: str, **more: object) -> TrialOut:
    return TrialOut.model_validate(
        {"number": number, "values": {"lr": number / 10, "name": "<i>"}, "state": state} | more
    )


def test_trials_are_a_table_with_the_best_one_and_links_to_notebooks(world: World) -> None:
    sweep = SweepOut(
        trials=3, parallel=1, share=True, trial_seconds=0, objective="loss", maximize=False
    )
    world.service.put(job(lease=lease(device()), sweep=sweep, **RUNNING))
    world.service.sweeps["j-aaaaaaaa"] = TrialsOut(
        trials=[
            trial(1, "succeeded", at=5.0, seconds=0.25, reported={"loss": 2.0}, notebook="x"),
            trial(2, "failed", at=6.0, seconds=700.0, message="error in <cell> 2", notebook="y"),
            trial(3, "succeeded", at=7.0, seconds=3.0, reported={"loss": 0.5}, notebook="z"),
        ],
        parameters=["lr", "name"],
        names=["loss"],
        objective="loss",
        best=3,
    )
    page = world.browser().get(PAGE).text
    check_page(page)
    said = " ".join(text_of(page).split())
    assert "3 trials: 2 succeeded, 1 failed. The best one is trial 3 : loss = 0.5" in said
    rows = re.findall(r"<tr.*?</tr>", page[page.index('id="trials"') :], re.DOTALL)[1:4]
    assert [" ".join(text_of(row).split()) for row in rows] == [
        "1 0.1 &lt;i&gt; succeeded 0.25 s 2",
        "2 0.2 &lt;i&gt; failed 11 min 40 s error in &lt;cell&gt; 2",
        "3 0.3 &lt;i&gt; succeeded 3.00 s 0.5",
    ]
    assert f'href="{PAGE}/notebook?trial=3"' in page
    assert "loss from step 1 to 2: best so far, 0.5" in page
    assert "The best one, trial 3, has lr = 0.3, loss = 0.5." in page
    assert "No cell has started yet" not in page
    table = world.browser().get(f"{PAGE}/trials.csv")
    assert table.text.splitlines()[0] == "trial,lr,name,state,seconds,loss,message"
    assert 'filename="j-aaaaaaaa-trials.csv"' in table.headers["content-disposition"]


def test_a_trial_that_the_sweep_lacks_is_not_found(world: World) -> None:
    world.service.put(job(lease=lease(device()), **RUNNING))
    found = world.browser().get(f"{PAGE}/notebook?trial=3")
    assert found.status_code == 404
    assert "j-aaaaaaaa has no trial 3." in found.text


def test_many_trials_and_files_are_shown_in_parts(world: World) -> None:
    sweep = SweepOut(
        trials=10_000, parallel=4, share=True, trial_seconds=0, objective="loss", maximize=False
    )
    world.service.put(job(lease=lease(device()), sweep=sweep, **RUNNING))
    states = {7000: "running", 8000: "failed", 300: "failed"}
    world.service.sweeps["j-aaaaaaaa"] = TrialsOut(
        trials=[
            trial(number, states.get(number, "succeeded"), reported={"loss": abs(number - 500)})
            for number in range(1, 10_001)
        ],
        parameters=["lr"],
        names=["loss"],
        objective="loss",
        best=500,
    )
    named = [FileOut(name=f"{n:04}.txt", size=1, modified_at=NOW) for n in range(250)]
    world.service.put_out["j-aaaaaaaa"] = FilesOut(files=named)
    page = world.browser().get(PAGE).text
    check_page(page)
    assert numbers_in(page)[:6] == [500, 7000, 300, 8000, 1, 2]
    assert len(numbers_in(page)) == 100
    assert "trials: 9997 succeeded, 2 failed, 1 running." in " ".join(text_of(page).split())
    assert "1 to 100 of 10,000 trials" in page
    assert f'href="{PAGE}?trials=2&amp;files=1#trials-title"' in page
    assert page.count(".txt</a>") == 100
    assert "Drawn are 200 of 9,997 trials, evenly chosen from the best to the worst." in page
    assert len(page) < 130_000

    last = world.browser().get(f"{PAGE}?trials=100&files=3").text
    check_page(last)
    assert numbers_in(last)[-2:] == [9999, 10_000]
    assert "201 to 250 of 250 files" in last
    assert f"{PAGE}/feed?after=0&amp;epoch=0&amp;trials=100&amp;files=3" in last
    assert numbers_in(world.browser().get(f"{PAGE}?trials=1000").text) == numbers_in(last)


def test_tensorboard_is_offered_for_event_files_of_ones_own_jobs(world: World) -> None:
    names = ["result.csv", "events.out.tfevents.csv/x", "runs/a/events.out.tfevents.17.host"]
    files = [FileOut(name=name, size=1, modified_at=NOW) for name in names]
    for owner, shown, offered in (("ada", files, True), ("ada", files[:2], False)):
        world.service.put(job(lease=lease(device()), owner=owner, **RUNNING))
        world.service.put_out["j-aaaaaaaa"] = FilesOut(files=shown)
        page = world.browser().get(PAGE).text
        check_page(page)
        assert ("Open in TensorBoard" in page) is offered


def numbers_in(page: str) -> list[int]:
    """Return the numbers of the trials in the table."""
    table = page[page.index('id="trials"') :]
    rows = re.findall(
        r'<tr[^>]*><th scope="row">(?:<a[^>]*>)?(\d+)', table[: table.index("</table>")]
    )
    return [int(number) for number in rows]


def test_trials_that_are_trained_as_one_say_so_on_their_page(world: World) -> None:
    sweep = SweepOut(
        trials=12,
        parallel=1,
        share=True,
        trial_seconds=0,
        objective="loss",
        maximize=False,
        together=True,
    )
    world.service.put(job(lease=lease(device()), sweep=sweep, **RUNNING))
    world.service.sweeps["j-aaaaaaaa"] = TrialsOut(
        trials=[trial(number, "running", reported={"loss": number}) for number in range(1, 13)],
        parameters=["lr"],
        names=["loss"],
        objective="loss",
        together=True,
    )
    page = world.browser().get(PAGE).text
    check_page(page)
    assert "12 trials trained as one: 12 running." in " ".join(text_of(page).split())
