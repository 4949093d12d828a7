"""Jobs on the pages: submit, follow, cancel and list, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from .browser import Person, another_page, take_picture
from .listener import Listener
from .support import Installation
from .widget_pages import submit, write_notebook

pytestmark = pytest.mark.browser

PARAMETERS = """\
rounds: int = 3  # how often it prints
rate = 0.1  # step size
mood = "calm"
careful = False
gate = ""  # the folder that is waited for"""
HOLD = """\
import os, sys, time
def hold(name):
    while not os.path.exists(os.path.join(gate, name)):
        time.sleep(0.05)
for turn in range(rounds):
    print(f"<b>turn</b> {turn} {mood}", flush=True)
hold("printed")"""
IMAGE = """\
import struct, zlib
from IPython.display import HTML, Image, display
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + bytes((x, y, 160)) * 120 for x, y in zip(range(80), range(80)))
header = struct.pack(">IIBBBBB", 120, 80, 8, 2, 0, 0, 0)
display(Image(data=b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", header)
    + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")))
hold("drawn")"""
HOSTILE = """\
display(HTML('''<table><tr><td id="said">A table of results</td></tr></table>
<script>
document.title = "taken over"; parent.document.title = "taken over";
fetch("{url}/from-a-script");
</script>
<img src="{url}/from-an-image" onerror="fetch('{url}/from-a-handler')">
<style>@import url("{url}/from-a-style");</style>
<form action="{url}/from-a-form"></form><meta http-equiv="refresh" content="0;url={url}/moved">'''))
hold("hostile")"""
PROGRESS = """\
for step in range(41):
    sys.stderr.write(f"\\r{step}%|{'█' * (step // 10)}    | {step}/100 [00:01<00:02, 33it/s]")
    sys.stderr.flush()
    time.sleep(0.02)
hold("halfway")"""
FILE = """\
from IPython.display import Latex, Markdown
with open(os.path.join(os.environ["CARREL_OUTPUT_DIR"], "result & more.txt"), "w") as f:
    f.write("found it")
print("\\x1b[32mgreen\\x1b[0m", flush=True)
display(Latex(r"$\\frac{1}{2}$"), Markdown("**bold** $x^2$ <script>1</script>"))
hold("written")"""
ERROR = 'raise ValueError("<i>no</i> such rate")'
SLOW = """\
import time
print("half of the work", flush=True)
time.sleep(600)"""


FIGURES = """\
from IPython.display import display
def plotly(figure):
    display({"application/vnd.plotly.v1+json": figure, "text/plain": "Figure"}, raw=True)
def vega(spec):
    display({"application/vnd.vegalite.v6.json": spec, "text/plain": "Chart"}, raw=True)
attack = "<script>fetch('{url}/from-a-title')</script><img src='{url}/from-an-image'>"
plotly({"data": [{"type": "bar", "x": ["a", "b", "c"], "y": [1, 3, 2], "name": attack,
    "hovertemplate": attack}], "layout": {"title": {"text": "Loss" + attack}, "images": [
    {"source": "{url}/from-a-layout", "xref": "paper", "yref": "paper", "sizex": 1, "sizey": 1}]}})
plotly({"data": [{"type": "scatter", "y": list(range(9000))}], "layout": {"width": 900}})"""
CHARTS = """\
rows = {"values": [{"a": "x", "b": 28}, {"a": "y", "b": 55}]}
bars = {"mark": "bar", "encoding": {"x": {"field": "a", "type": "nominal"},
    "y": {"field": "b", "type": "quantitative"}},
    "$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json"}
vega({**bars, "data": rows, "title": "Chart" + attack})
vega({**bars, "data": {"url": "{url}/from-data.json"}, "usermeta": {"embedOptions": {
    "patch": "{url}/from-a-patch"}}})
vega({**bars, "data": rows, "transform": [{"calculate":
    "constructor.constructor(\\"fetch('{url}/from-an-expression')\\")()", "as": "z"}]})"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The folder in which the notebook waits for a file before each step, so that timing is
    certain.
    """
    made = tmp_path / "gate"
    made.mkdir()
    return made


def looks(person: Person, name: str) -> None:
    """Take screenshots in light, dark and phone width, where nothing may overflow."""
    page, usual = person.page, person.page.viewport_size
    for dark in (True, False):
        page.emulate_media(color_scheme="dark" if dark else "light")
        theme = "dark" if dark else "light"
        expect(page.locator(f'html[data-bs-theme="{theme}"]')).to_have_count(1)
        picture(page, f"{name}-{theme}")
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, f"{name}-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if usual is not None:
        page.set_viewport_size(usual)


def picture(page: Page, name: str) -> None:
    take_picture(page, f"page-{name}", full_page=True, animations="disabled")


def cell(page: Page, number: int) -> Locator:
    return page.locator(f"#cell-1-{number}")


def test_a_notebook_is_submitted_and_watched_cell_by_cell(
    site: Installation, person: Person, browser: Browser, tmp_path: Path, gate: Path
) -> None:
    with Listener.opened() as listener:
        hostile = HOSTILE.replace("{url}", listener.url)
        story = tmp_path / "story.ipynb"
        write_notebook(
            story, HOLD, IMAGE, hostile, PROGRESS, FILE, ERROR, "1", parameters=PARAMETERS
        )
        job = fills_in_the_form(person, story, gate)
        page = person.page
        watches_it_live(page, gate)
        person.picture("page-job-live")

        (gate / "written").touch()
        expect(cell(page, 7).locator(".traceback")).to_contain_text("ValueError: <i>no</i>")
        expect(page.locator("#request-state")).to_contain_text("failed")
        expect(page.locator("#request-state")).to_contain_text("cell 7")
        everything_is_there_once(page)
        page.reload()
        everything_is_there_once(page)
        looks(person, "job")
        downloads_the_file(page)

        page.goto(site.url + str(cell(page, 4).locator("iframe").get_attribute("src")))
        expect(page.locator("#said")).to_have_text("A table of results")
        expect(page).not_to_have_title("taken over")
        page.goto(f"{site.service}/requests/{job}/notebook")
        framed = page.frame_locator("iframe")
        expect(framed.locator("body")).to_contain_text("<i>no</i> such rate")
        looks(person, "notebook")
        expect(page).not_to_have_title("taken over")
        assert listener.asked == []
    student2_finds_nothing(browser, site, job)


def fills_in_the_form(person: Person, story: Path, gate: Path) -> str:
    page = person.page
    with another_page(page):  # a form that does not listen yet would not inspect the file
        page.get_by_role("link", name="Submit", exact=True).click()
    page.set_input_files("#notebook", story)
    rounds = page.get_by_label("rounds")
    expect(rounds).to_have_value("3")
    expect(rounds).to_have_attribute("inputmode", "numeric")
    expect(page.locator("#notebook-part")).to_contain_text("how often it prints")
    expect(page.get_by_label("careful")).to_have_value("false")

    rounds.fill("many")
    page.get_by_label("gate").fill(str(gate))
    page.get_by_label("mood").fill("wild")
    page.click("#submit")
    wrong = page.locator("#parameter-rounds-problem")
    expect(wrong).to_contain_text(
        "'many' is not a valid value of rounds. A whole number such as 10."
    )
    expect(rounds).to_be_focused()
    expect(page.get_by_label("mood")).to_have_value("wild")
    assert page.evaluate("document.getElementById('notebook').files[0].name") == "story.ipynb"
    looks(person, "submit")

    rounds.fill("4")
    page.click("#submit")
    page.wait_for_url(re.compile(r"/requests/j-\w+$"))
    job = page.url.rpartition("/")[2]
    found = person.site.request(job, user=person.name)
    assert found["parameters"] == {"rounds": 4, "gate": str(gate), "mood": "wild"}
    return job


def watches_it_live(page: Page, gate: Path) -> None:
    """Each cell is shown before the next one may begin, without reloading."""
    expect(cell(page, 2)).to_contain_text("<b>turn</b> 3 wild")
    expect(cell(page, 2).locator(".cell-state")).to_have_text("running")
    expect(cell(page, 3)).to_have_count(0)
    (gate / "printed").touch()

    picture = cell(page, 3).locator("img")
    expect(picture).to_have_js_property("naturalWidth", 120)
    expect(cell(page, 2).locator(".cell-state")).to_have_text("done")
    (gate / "drawn").touch()

    framed = cell(page, 4).frame_locator("iframe")
    expect(framed.locator("#said")).to_have_text("A table of results")
    expect(cell(page, 4)).to_contain_text("Scripts do not run here.")
    (gate / "hostile").touch()

    bar = page.get_by_role("progressbar", name="Progress inside the cell")
    expect(bar).to_have_js_property("value", 40)
    expect(bar).to_have_js_property("max", 100)
    (gate / "halfway").touch()

    expect(page.get_by_role("link", name="result & more.txt")).to_be_visible()
    expect(page).not_to_have_title("taken over")


def everything_is_there_once(page: Page) -> None:
    expect(page.locator(".cells > .cell")).to_have_count(7)
    printed = cell(page, 2).locator(".output")
    expect(printed).to_have_count(1)
    expect(printed).to_have_text("".join(f"<b>turn</b> {n} wild\n" for n in range(4)))
    expect(cell(page, 3).locator("img")).to_have_count(1)
    expect(cell(page, 4).locator("iframe")).to_have_count(1)
    framed = cell(page, 4).frame_locator("iframe")
    expect(framed.locator("#said")).to_have_text("A table of results")
    bar = cell(page, 5).locator(".stream-stderr")
    expect(bar).to_have_count(1)
    expect(bar).to_have_text(re.compile(r"^\s*40%[^\n]*40/100[^\n]*$"))
    expect(cell(page, 2).locator(".source-code")).to_contain_text("for turn in range(rounds)")
    told = cell(page, 6)
    expect(told.locator(".ansi-green")).to_have_text("green")
    expect(told.locator("math mfrac")).to_be_visible()
    expect(told.locator(".rich strong")).to_have_text("bold")
    expect(cell(page, 7).locator(".traceback")).to_have_count(1)
    expect(page.locator("#request-state .cause a")).to_have_attribute("href", "#cell-1-7")
    expect(page.locator(".cell-failed")).to_have_count(1)
    moves = page.locator(".moves li .move-state").all_inner_texts()
    assert len(moves) == len(set(moves))


def downloads_the_file(page: Page) -> None:
    with page.expect_download() as started:
        page.get_by_role("link", name="result & more.txt").click()
    assert started.value.suggested_filename == "result & more.txt"
    assert Path(started.value.path()).read_text() == "found it"


def student2_finds_nothing(browser: Browser, site: Installation, job: str) -> None:
    other = Person.sits_down(browser, site, "student2")
    other.sign_in()
    for path in (
        job,
        f"{job}/feed",
        f"{job}/notebook",
        f"{job}/notebook/content",
        f"{job}/outputs/1",
    ):
        answer = other.page.request.get(f"{site.service}/requests/{path}")
        assert answer.status == 404, path
    for path in ("", "/log", "/output", "/events", "/files", "/files/result%20&%20more.txt"):
        answer = other.page.request.get(f"{site.service}/api/v1/requests/{job}{path}")
        assert answer.status == 404, path
    other.page.goto(f"{site.service}/requests/{job}")
    expect(other.page.locator("h1")).to_have_text(f"There is no request {job}.")
    other.page.goto(f"{site.service}/requests?whose=all")
    expect(other.page.locator("main")).not_to_contain_text(job)


def test_a_job_cancelled_within_a_cell_keeps_its_output(
    site: Installation, person: Person, tmp_path: Path
) -> None:
    notebook = tmp_path / "slow.ipynb"
    write_notebook(notebook, "print('the first is done')", SLOW, "print('never')")
    job = submit(site, notebook, devices=1, seconds=600)
    page = person.page
    page.goto(f"{site.service}/requests/{job}")
    expect(cell(page, 2)).to_contain_text("half of the work")
    page.click("#halt")
    expect(page.locator("#request-state .idle-warning")).to_contain_text("Halted by its owner.")
    expect(page.locator("#halt")).to_have_count(0)
    looks(person, "job-halted")
    page.once("dialog", lambda dialog: dialog.accept())
    page.click(f"#stop-{job}")
    expect(page.locator("#request-state")).to_contain_text("cancelled")
    expect(cell(page, 1)).to_contain_text("the first is done")
    expect(cell(page, 2).locator(".cell-state")).to_have_text("stopped")
    page.reload()
    expect(cell(page, 2).locator(".cell-state")).to_have_text("stopped")
    expect(page.locator("#request-state")).to_contain_text("Cancelled by its owner.")
    with page.expect_download() as started:
        page.click("#output")
    cells = json.loads(Path(started.value.path()).read_text())["cells"]
    assert "half of the work" in json.dumps(cells[1]["outputs"])
    assert cells[2]["outputs"] == []
    person.picture("page-job-cancelled")
    page.click("#save-to-home")
    expect(page.locator("#saved")).to_contain_text(
        f"1 file saved in your home, in the folder jobs/{job}"
    )
    page.click("#save-to-home")
    expect(page.locator("#saved")).to_contain_text("Your home has all of it already")


def test_the_list_is_filtered_and_cancelled_in_bulk(
    site: Installation, person: Person, tmp_path: Path
) -> None:
    notebook = tmp_path / "sweep.ipynb"
    write_notebook(notebook, "import time\ntime.sleep(600)")
    sweep, other = (
        [submit(site, notebook, devices=1, seconds=600, labels={"sweep": key}) for _ in range(n)]
        for key, n in (("7", 3), ("8", 2))
    )
    page = person.page
    page.get_by_role("link", name="Requests", exact=True).click()
    page.fill("#label", "sweep=7")
    page.select_option("#state", "live")
    page.click("#filter")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(3)
    page.click("#sort-submitted")
    expect(rows.first).to_contain_text(sweep[0])
    with page.expect_download() as started:
        page.click("#csv")
    table = Path(started.value.path()).read_text().splitlines()
    assert [line.partition(",")[0] for line in table] == ["id", *sweep]
    page.check(f"#choose-{sweep[1]}")
    looks(person, "list")
    page.click("#cancel-chosen")
    expect(page.locator("h1")).to_have_text("Cancel 1 request?")
    page.click("#confirm")
    expect(page.get_by_role("status").first).to_contain_text("1 request cancelled.")
    page.get_by_role("link", name="Back to the list").click()
    page.click("#cancel-all")
    expect(page.locator("h1")).to_have_text("Cancel 2 requests?")
    looks(person, "cancel")
    page.click("#confirm")
    expect(page.get_by_role("status").first).to_contain_text("2 requests cancelled.")
    for job in sweep:
        site.wait_for(job, "cancelled", user="student1")
    page.goto(f"{site.service}/requests?state=live&kind=job")
    expect(rows).to_have_count(2)
    for job in other:
        expect(page.locator(f"#show-{job}")).to_be_visible()
        site.api("DELETE", f"/requests/{job}", user="student1")


def test_figures_are_drawn_in_their_frames_and_reach_no_host(
    site: Installation, browser: Browser, tmp_path: Path
) -> None:
    person = Person.sits_down(browser, site, "student1")
    person.sign_in()
    page, asked = person.page, set[str]()
    page.context.on("request", lambda request: asked.add(request.url))
    with Listener.opened() as listener:
        notebook = tmp_path / "figures.ipynb"
        write_notebook(
            notebook, *(text.replace("{url}", listener.url) for text in (FIGURES, CHARTS))
        )
        job = submit(site, notebook)
        site.wait_for(job, "succeeded", user="student1", within=120)
        page.goto(f"{site.service}/requests/{job}")
        for figure in page.locator("details.figure").all():
            figure.locator("summary").click()
        first, large = (cell(page, 1).frame_locator("iframe").nth(n) for n in (0, 1))
        expect(first.locator(".bars .point path")).to_have_count(3)
        expect(first.locator(".gtitle")).to_contain_text("Loss")
        expect(large.locator(".scatterlayer .js-line")).to_have_count(1)
        chart, fetching, computing = (
            cell(page, 2).frame_locator("iframe").nth(n) for n in (0, 1, 2)
        )
        expect(chart.locator("svg .mark-rect path")).to_have_count(2)
        expect(chart.locator("svg .mark-text").filter(has_text="Chart<script>")).to_be_visible()
        expect(fetching.locator("body")).to_contain_text("This figure cannot be drawn")
        expect(computing.locator("body")).to_contain_text("This figure cannot be drawn")
        looks(person, "figures")
        page.goto(f"{site.service}/requests/{job}/notebook")
        whole = page.frame_locator("iframe")
        expect(whole.locator(".bars .point path")).to_have_count(3)
        expect(whole.locator("svg .mark-rect path").first).to_be_visible()
        whole.locator("svg .mark-rect path").first.scroll_into_view_if_needed()
        looks(person, "notebook-figures")
        assert listener.asked == []
    sent = [url for url in asked if not url.startswith((site.url, "data:", "blob:"))]
    # A request that the policy blocks is reported, but never leaves.
    assert [url for url in sent if not url.startswith(listener.url)] == []
    assert [url for url in asked if url.endswith("/static/figures/plotly.js")] != []


STUDY = """\
[jobs.report]
notebook = "report.ipynb"
results = { rate = "search.best.rate", rows = "prepare.report.rows" }
after = ["prepare", "search"]

[jobs.search]
notebook = "search.ipynb"
sweep = { grid = { rate = [0.5, 0.25] }, objective = "loss" }

[jobs.prepare]
notebook = "prepare.ipynb"
"""


def test_a_pipeline_goes_on_after_a_failed_job_was_resumed_and_passes_values_on(
    site: Installation, person: Person, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    fails = f"import os, carrel\nassert os.path.exists({str(ready)!r})\ncarrel.report('rows', 7)"
    write_notebook(tmp_path / "prepare.ipynb", fails)
    loss = "import carrel\ncarrel.report('loss', rate)"
    write_notebook(tmp_path / "search.ipynb", loss, parameters="rate = 1.0")
    told = "print('rate', rate, 'of', list(range(rows)))"
    write_notebook(tmp_path / "report.ipynb", told, parameters="rate = 0.0\nrows = 0")
    circle = tmp_path / "circle.toml"
    circle.write_text(STUDY + 'after = "report"\n')
    refused = site.cli("pipeline", str(circle), user="student1", check=False)
    assert refused.returncode
    assert "wait for each other in a circle: report → prepare → report." in refused.stderr
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    submitted = site.cli("pipeline", str(study), "--json", user="student1").stdout.splitlines()
    jobs = {each["labels"]["pipeline-job"]: each["id"] for each in map(json.loads, submitted)}

    page = person.page
    page.goto(f"{site.service}/requests/{jobs['report']}")
    graph = page.locator("#request-pipeline")
    box = graph.get_by_role("link", name="prepare, failed")
    expect(box).to_be_visible()
    expect(graph.get_by_role("link", name="search, succeeded")).to_be_visible()
    expect(graph.locator("[aria-current=page]")).to_have_accessible_name("report, queued")
    expect(page.locator("#request-state")).to_contain_text(f"carrel resume {jobs['prepare']}")
    expect(page.locator("#request-parameters")).to_contain_text("set when that job has ended")
    looks(person, "pipeline-failed")

    ready.touch()
    box.click()
    page.click("#resume")
    page.wait_for_url(lambda url: not url.endswith(jobs["prepare"]))
    resumed = page.url.rpartition("/")[2]
    page.locator("#request-pipeline").get_by_role("link", name="report, queued").click()
    page.wait_for_url(re.compile(jobs["report"]))
    parameters = page.locator("#request-parameters")
    # The random ID of a job in a row can contain the name of another.
    rate, rows = (
        parameters.get_by_role("row", name=re.compile(f"^{n}\\b")) for n in ("rate", "rows")
    )
    expect(rate).to_contain_text("0.25")
    expect(rows).to_contain_text(f"{resumed}, report.rows")
    expect(page.locator("#request-state")).to_contain_text("succeeded")
    expect(page.locator("#attempts")).to_contain_text("rate 0.25 of [0, 1, 2, 3, 4, 5, 6]")
    page.reload()
    expect(graph.locator(".job-box")).to_have_count(4)
    expect(graph.locator("[aria-current=page]")).to_have_accessible_name("report, succeeded")
    graph.get_by_text("As a list").click()
    expect(graph.get_by_role("listitem").last).to_contain_text("succeeded, after prepare")
    looks(person, "pipeline")
