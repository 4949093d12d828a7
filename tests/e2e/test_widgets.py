"""Sessions in a real browser: live views and outputs in JupyterLab, Notebook 7 and Voila."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

import pytest
from playwright.sync_api import Locator, Page, expect

from ..extensions.materials.git_server import GitServer, git_server
from ..promises import in_time
from ..requirements import need
from .axe import findings
from .browser import SESSION_MS, Person, another_page, take_picture
from .lab_desk import LabDesk, assignment_is_released
from .session_outputs import AWAY, PRINTS, Outputs
from .support import Installation, allow_links, eventually, installation
from .widget_pages import Notebook, notebook_text, save, shows, submit, write_notebook

pytestmark = pytest.mark.browser

USER = "student1"
CELL = """import time
for step in range(3):
    print('<b>step</b>', step, flush=True)
    time.sleep({})"""
GATED = """import time
from pathlib import Path
while not Path({!r}).exists():
    time.sleep(0.1)"""
WRITES_EVENTS = """import os, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ['CARREL_OUTPUT_DIR'] + '/runs/a')
value = Summary.Value(tag='shown-by-tensorboard', simple_value=0.5)
writer.add_event(Event(wall_time=time.time(), step=1, summary=Summary(value=[value])))
writer.close()"""
HOLDS = """import ctypes, time
time.sleep(3)  # the kernel says that it is busy
ctypes.PyDLL(None).sleep(6)  # holds Python's lock: no other thread runs
print('let', 'go')"""
STARTED_HERE = "from carrel.extensions.widgets import JobView, SubmitForm\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """A git server whose repositories may be opened by links."""
    with git_server(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, served: GitServer) -> Iterator[Installation]:
    """An installation with one simulated device that opens links."""
    state = tmp_path_factory.mktemp("site") / "state"
    allow_links(state, f"{served.url}/")
    with installation(state, "--simulated-devices", "1") as made:
        yield made


@pytest.fixture
def person(person: Person, site: Installation) -> Person:
    """A CPU session."""
    known = site.api("GET", "/requests?kind=session", user=USER).json()["requests"]
    if all(session["ended"] for session in known):
        site.start_session(USER, devices=0)
    person.page.goto(f"{site.service}/wait/-")
    person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
    return person


@pytest.fixture
def home(site: Installation) -> Path:
    return site.state / "homes" / USER


def slow_job(site: Installation, home: Path, *, seconds: float = 0.4, devices: int = 1) -> str:
    write_notebook(
        home / "slow.ipynb", *[CELL.format(seconds)] * 5, parameters="rate = 0.1  # step"
    )
    return submit(site, home / "slow.ipynb", devices=devices, seconds=600)


@pytest.mark.parametrize("kind", ["lab/tree", pytest.param("notebooks", marks=pytest.mark.slow)])
def test_a_job_is_watched_through_reload_and_restart_and_cancelled_by_keyboard(
    site: Installation, person: Person, home: Path, kind: str
) -> None:
    gate = home / f"{kind.partition('/')[0]}-goes-on"
    write_notebook(
        home / "gated.ipynb",
        GATED.format(str(gate)),
        *[CELL.format(60)] * 4,
        parameters="rate = 0.1  # step",
    )
    job = submit(site, home / "gated.ipynb", devices=1, seconds=600)
    write_notebook(home / "watch.ipynb", f"{STARTED_HERE}JobView({job!r})")
    text = announced(site, f"The pool is drained on Friday ({kind}).")
    notebook = Notebook.open(person, kind, "watch.ipynb")
    expect(LabDesk(person).notification(text)).to_be_visible()
    notebook.run()
    view = notebook.view
    shows(view, "cell 2 runs")
    shows(view, "(simulated)")
    expect(view.get_by_role("progressbar", name="Cells done")).to_have_attribute(
        "aria-valuemax", "6"
    )
    name = kind.replace("/", "-")
    person.picture(f"widget-job-{name}")

    save(notebook.page)
    notebook.page.reload()
    notebook.ready()
    is_closed_for_good(site, LabDesk(person).notification(text))
    gate.touch()
    shows(notebook.view, "cell 3 runs")

    def detached() -> dict[str, float]:
        notebook.restart_kernel()
        began = time.monotonic()
        expect(notebook.view.locator(".carrel-detached")).to_contain_text("Detached")
        took = time.monotonic() - began
        person.picture(f"widget-detached-{name}")
        stands_still(notebook)
        notebook.view.get_by_role("button", name="Run this cell again").click()
        expect(notebook.page.locator(".carrel-stale")).to_have_count(0)
        shows(notebook.view, "6 cells")  # the stored events from the beginning
        return {"it says that it is detached": took}

    in_time(detached, {"it says that it is detached": 5.5})

    cancel_by_keyboard(notebook.page)
    shows(notebook.view, "cancelled")
    assert site.wait_for(job, "cancelled", user=USER)["cause"]["code"] == "cancelled"


def announced(site: Installation, text: str) -> str:
    body = {"text": text, "level": "warning", "ends_at": time.time() + 3600}
    made = site.api("POST", "/announcements", user="admin", json=body)
    assert made.status_code == 201, made.text
    return text


def is_closed_for_good(site: Installation, announcement: Locator) -> None:
    announcement.get_by_role("button", name="Do not show again").click()
    expect(announcement).to_have_count(0)
    eventually(
        lambda: site.api("GET", "/announcements", user=USER).json() == {"announcements": []},
        "it is closed on all pages",
    )


def stands_still(notebook: Notebook) -> None:
    """A detached view stops counting."""
    facts = notebook.view.locator(".carrel-facts").first
    shown = facts.inner_text()
    assert "runs for" in shown
    seen_at = notebook.page.evaluate("Date.now()")
    notebook.page.wait_for_function("before => Date.now() - before > 2500", arg=seen_at)
    assert facts.inner_text() == shown


def test_a_kernel_that_blocks_all_threads_is_shown_as_running(
    site: Installation, person: Person, home: Path
) -> None:
    job = slow_job(site, home, seconds=10.0, devices=0)
    write_notebook(home / "busy.ipynb", f"{STARTED_HERE}JobView({job!r})", HOLDS)
    notebook = Notebook.open(person, "lab/tree", "busy.ipynb")
    notebook.run()
    shows(notebook.view, "runs for")
    notebook.view.locator(".carrel-detached").evaluate(
        """(notice) => new MutationObserver(() => { if (!notice.hidden) window.wasGone = true; })
             .observe(notice, {attributes: true})"""
    )
    notebook.run(1)
    expect(notebook.page.locator(".jp-OutputArea").nth(1)).to_contain_text("let go")
    notebook.cancel_by_mouse()
    shows(notebook.view, "Cancelled by its owner.")
    assert not notebook.page.evaluate("window.wasGone")


def test_a_sweep_is_watched_and_a_trial_is_stopped_by_keyboard(
    site: Installation, person: Person, home: Path
) -> None:
    gate = home / "trials-go-on"
    waits = f"import carrel\nfrom pathlib import Path\nif lr < 1:\n{indent(GATED, '    ')}"
    write_notebook(
        home / "swept.ipynb",
        waits.format(str(gate)),
        "carrel.report('loss', lr)",
        parameters="lr = 1.0",
    )
    sweep = {"space": {"grid": {"lr": [1.0, 0.1, 0.01, 0.001]}}, "objective": "loss"}
    job = submit(site, home / "swept.ipynb", devices=1, seconds=600, sweep=sweep)
    write_notebook(home / "sweep-view.ipynb", f"import carrel\ncarrel.SweepView({job!r})")
    notebook = Notebook.open(person, "lab/tree", "sweep-view.ipynb")
    notebook.run()
    view = notebook.page.locator(".carrel-sweep").last
    shows(view, "4 trials: 1 succeeded, 1 running, 2 waiting.")
    shows(view, "(simulated)")
    view.get_by_role("button", name="Stop trial 4").focus()
    notebook.page.keyboard.press("Enter")
    shows(view, "1 stopped")
    page = person.page.context.new_page()
    page.goto(f"{site.service}/requests/{job}?trials=1&files=1")
    page.get_by_role("button", name="Stop trial 3").click()
    expect(page.locator("#request-trials")).to_contain_text("2 stopped")
    assert page.url.endswith(f"/requests/{job}?trials=1&files=1#trials-title")
    page.locator("#sharing-panel summary").click()
    branch = "lr=0.1: cells 2 to 3, trial 2"
    expect(page.get_by_role("region", name="Stages")).to_contain_text(branch)
    expect(page.locator("#shared-cells")).to_contain_text("uses lr")
    page.close()
    view.get_by_text("What trials share").click()
    shows(view, branch)
    gate.touch()
    shows(view, "4 trials: 2 succeeded, 2 stopped. The best one is trial 2: loss = 0.1.")
    expect(view.get_by_role("img", name="Parallel coordinates of 2 trials")).to_be_visible()
    expect(view.get_by_role("img", name="loss from step 1 to 2")).to_be_visible()
    expect(view.get_by_role("button")).to_have_count(0)
    expect(view.get_by_role("link", name="CSV")).to_have_attribute(
        "href", f"/services/carrel/requests/{job}/trials.csv"
    )
    assert [each for each in findings(notebook.page, within=".carrel-sweep") if each.severe] == []
    take_picture(notebook.page, "widget-sweep")


def cancel_by_keyboard(page: Page) -> None:
    """Without the mouse."""
    button = page.locator(".carrel-job").last.get_by_role("button", name="Cancel job")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Yes, cancel it")).to_be_focused()
    page.keyboard.press("Enter")


def test_the_form_submits_and_shows_an_error_beside_its_field(
    site: Installation, person: Person, home: Path
) -> None:
    slow_job(site, home, devices=0, seconds=0.1)
    in_the_dark(home)
    write_notebook(home / "form.ipynb", f"{STARTED_HERE}SubmitForm('slow.ipynb')")
    notebook = Notebook.open(person, "lab/tree", "form.ipynb")
    notebook.run()
    page = notebook.page
    page.get_by_label("Time limit").fill("soon")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".carrel-wrong", has_text="Invalid duration")).to_be_visible()
    person.picture("widget-form-refused")
    page.get_by_label("Time limit").fill("10m")
    page.get_by_label("rate").fill("0.5")
    page.get_by_role("button", name="Submit").click()
    shows(notebook.view, "succeeded", within=150)
    person.picture("widget-form")
    jobs = site.api("GET", "/requests?kind=job", user=USER).json()["requests"]
    assert jobs[0]["parameters"] == {"rate": 0.5}


def in_the_dark(home: Path) -> None:
    """Set JupyterLab's dark theme in its settings."""
    folder = home / ".jupyter" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "themes.jupyterlab-settings").write_text('{"theme": "JupyterLab Dark"}')


def start_of(text: str) -> str:
    """Return the expected start without the time, which changes while it is read."""
    (words,) = re.findall(r"Expected start: [^.]*\.", text)
    clock = r"\d\d:\d\d(?:\s[AP]M)?"
    return re.sub(rf"{clock}( \(in about \d+ (min|s)\))?|any moment", "(a time)", words)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_dashboard_shows_pool_queue_and_jobs_as_they_change(
    site: Installation, person: Person, home: Path, theme: str
) -> None:
    # Longer than the dashboard takes to load.
    first, second, third = (slow_job(site, home, seconds=30.0) for _ in range(3))
    person.desk()
    link = person.page.get_by_role("link", name="Dashboard").get_attribute("href")
    page = person.page
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]  # one of two words
    errors: list[str] = []
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.goto(f"{site.url}{link}")
    expect(
        page.locator(f'body[data-jp-theme-light="{str(theme == "light").lower()}"]')
    ).to_be_visible()
    expect(page.locator(".carrel-tile")).to_contain_text("yours", timeout=SESSION_MS)
    expect(page.locator(".carrel-mine").first).to_contain_text("slow.ipynb")
    expect(page.locator(".carrel-job", has_text=first)).to_contain_text("running")
    # The reason is fetched when it is opened: in each own row, and in the job's own view.
    queue, asks = page.locator(".carrel-queue"), "It requests 1 device; 0 of 1 device are free now."
    for job in (second, third):
        row = queue.locator("tr", has=page.locator(f'a[href$="{job}"]'))
        row.get_by_role("button", name="Why, and what would help").click()
        expect(row.get_by_role("button", name="Less")).to_have_attribute("aria-expanded", "true")
        expect(row.locator("xpath=following-sibling::tr[1]")).to_contain_text(asks)
    expect(queue.locator(".carrel-below")).to_have_count(1)
    waits = page.locator(f'.carrel-job:has-text("{second}") .carrel-why')
    waits.locator("summary").click()
    expect(waits).to_contain_text(asks)
    row = queue.locator("tr.carrel-mine", has=page.locator(f'a[href$="{second}"]'))
    view = page.locator(f'.carrel-job:has-text("{second}") .carrel-wait')
    own = page.context.new_page()
    own.goto(f"{site.service}/requests/{second}")
    told = [each.inner_text() for each in (row, view, own.locator("#request-state"))]
    own.close()
    said = {start_of(each) for each in (*told, site.cli("why", second, user=USER).stdout)}
    assert len(said) == 1, said
    take_picture(page, f"widget-dashboard-{theme}", full_page=True)
    assert errors == []
    site.api("DELETE", f"/requests/{third}", user=USER)
    site.api("DELETE", f"/requests/{first}", user=USER)
    expect(page.locator(".carrel-job", has_text=second)).to_contain_text("running")
    site.api("DELETE", f"/requests/{second}", user=USER)
    expect(page.locator(".carrel-tile")).to_contain_text("free")
    eventually(lambda: site.request(second, user=USER)["ended"], "the second job's end")


def test_tensorboard_logs_of_a_job_are_opened_by_a_click(
    site: Installation, person: Person, home: Path
) -> None:
    need("tensorboard", find_spec("tensorboard"), "TensorBoard is not installed")
    write_notebook(home / "logs.ipynb", WRITES_EVENTS)
    job = submit(site, home / "logs.ipynb")
    site.wait_for(job, "succeeded", user=USER, within=120)
    page = person.page
    page.goto(f"{site.service}/requests/{job}")
    page.get_by_role("button", name="Open in TensorBoard").click()
    page.wait_for_url(f"**/user/{USER}/carrel/tensorboard/{job}/**", timeout=SESSION_MS)
    expect(page.get_by_text("runs/a").first).to_be_visible()
    expect(page.get_by_text("shown-by-tensorboard").first).to_be_visible()
    take_picture(page, "tensorboard")


def test_without_tensorboard_the_session_says_how_to_get_it(
    site: Installation, person: Person, home: Path
) -> None:
    if find_spec("tensorboard") is not None:
        pytest.skip("TensorBoard is installed")
    write_notebook(
        home / "no-logs.ipynb",
        "import os\nopen(os.environ['CARREL_OUTPUT_DIR'] + '/events.out.tfevents.1', 'w').close()",
    )
    job = submit(site, home / "no-logs.ipynb")
    site.wait_for(job, "succeeded", user=USER, within=120)
    page = person.page
    page.goto(f"{site.service}/requests/{job}")
    page.get_by_role("button", name="Open in TensorBoard").click()
    expect(page.get_by_text("TensorBoard is not installed in this session.")).to_be_visible()


def test_a_tab_that_was_closed_during_a_cell_shows_all_its_output_and_goes_on(
    site: Installation, person: Person, home: Path
) -> None:
    outputs = Outputs(person, home)
    gates = [home / "first", home / "second"]
    write_notebook(home / "long.ipynb", PRINTS.format(*map(str, gates)), "print('next cell')")
    notebook = Notebook.open(person, "lab/tree", "long.ipynb")
    notebook.run(0)
    notebook.run(1)
    expect(outputs.of(0)).to_have_text("at first\n")
    outputs.leave()
    gates[0].touch()
    eventually(lambda: "while away 2" in outputs.journal("long.ipynb"), "the cell prints")

    notebook = outputs.come_back("long.ipynb")
    expect(outputs.of(0)).to_have_text(AWAY)
    expect(outputs.prompt(0)).to_have_text("[*]:")
    expect(outputs.prompt(1)).to_have_text("[*]:")
    gates[1].touch()
    expect(outputs.of(0)).to_have_text(f"{AWAY}at last\n")
    expect(outputs.of(1)).to_have_text("next cell\n")
    expect(outputs.prompt(0)).to_have_text("[1]:")
    expect(outputs.prompt(1)).to_have_text("[2]:")

    save(notebook.page)
    eventually(lambda: not outputs.journal("long.ipynb"), "the saved notebook has it")
    outputs.leave()
    outputs.come_back("long.ipynb").kernel_is("idle")
    expect(outputs.of(0)).to_have_text(f"{AWAY}at last\n")
    expect(outputs.unsaved).to_have_count(0)


def test_a_student_works_checks_hands_in_and_submits_without_leaving_jupyterlab(
    site: Installation, person: Person, home: Path
) -> None:
    assignment_is_released(site)
    lab = LabDesk(person)
    lab.open_assignment_from_the_desk("ps1")
    expect(lab.status).to_contain_text("left")
    lab.has_no_parts_for_teachers()
    lab.write_into_first_cell("def answer(): return 42")
    lab.toolbar("Check")
    expect(lab.panel).to_contain_text("test-answer: passed", timeout=SESSION_MS)
    lab.is_accessible()
    person.picture("lab-panel")
    lab.toolbar("Hand in")
    expect(lab.notification("Handed in: submission 1 of ps1")).to_be_visible()
    (receipt,) = site.api("GET", "/courses/cs101/assignments/ps1/submissions", user=USER).json()[
        "receipts"
    ]
    assert receipt["standing"] == "on time"
    assert "return 42" in (home / "ps1" / "ps1.ipynb").read_text()

    write_notebook(home / "fails.ipynb", "1 / 0", "print(rate)", parameters="rate = 0.1")
    Notebook.open(person, "lab/tree", "fails.ipynb")
    job = lab.run_as_job(wrong={"rate": "fast"}, right={"rate": "0.5"})
    ended = site.wait_for(job, "failed", user=USER)
    assert ended["parameters"] == {"rate": 0.5}
    lab.open_failed_cell(job, number=2)
    expect(lab.notebook.locator(".jp-Cell.jp-mod-active")).to_contain_text("ZeroDivisionError")
    assert "ZeroDivisionError" in (home / "fails-1.ipynb").read_text()
    assert "ZeroDivisionError" not in (home / "fails.ipynb").read_text()


@pytest.mark.slow
def test_a_link_opened_again_keeps_the_cell_of_the_user_and_brings_that_of_the_repository(
    site: Installation, person: Person, home: Path, served: GitServer
) -> None:
    served.commit("course", {"week1/a.ipynb": notebook_text("first = 1", "second = 2")})
    lab = LabDesk(person)
    link = f"{site.service}/open?url={served.url}/course.git&path=week1/a.ipynb"
    lab.open_link(link, "a")
    lab.write_into_first_cell("first = 'mine'")
    save(person.page)
    served.commit("course", {"week1/a.ipynb": notebook_text("first = 1", "second = 'theirs'")})
    lab.open_link(link, "a")
    expect(lab.notebook.locator(".jp-CodeCell")).to_contain_text(["'mine'", "'theirs'"])
    merged = (home / "course/week1/a.ipynb").read_text()
    assert "first = 'mine'" in merged
    assert "second = 'theirs'" in merged
    person.page.goto(f"{link}&branch=none")
    with another_page(person.page):
        person.page.click("#open-here")
    expect(lab.notification("has no branch or tag none")).to_be_visible(timeout=SESSION_MS)
