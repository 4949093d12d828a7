"""An exhausted budget: running work is warned, told to save, and stopped as announced."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder

from .browser import SESSION_MS, Person
from .lending import WORK
from .support import Installation, eventually, installation
from .widget_pages import Notebook, write_notebook

USER, OTHER, TEACHER = "student1", "student2", "teacher"
GRACE = 30.0
"""A session polls for warnings every 15 seconds, and its tab saves 10 before the end."""
NEARLY = 0.95
"""The used part at which warnings begin; a job that ends some seconds later uses the rest."""
TOLD = frozenset({"budget_low", "notice", "notice_over"})
USED_UP = "cs101 has used up its budget for this period. Save your work."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    state = StateFolder.at(tmp_path_factory.mktemp("budget") / "state")
    state.create()
    Settings(preemption_grace_seconds=GRACE).save(state)
    with installation(state.root, "--simulated-devices", "3") as made:
        yield made


def submit(site: Installation, user: str, folder: str) -> str:
    """A job that saves when told to, and runs until the file ``enough`` exists."""
    (site.state / "homes" / user / folder).mkdir(parents=True)
    what = ("--devices", "1", "--group", "cs101", "--time", "10m", "--workdir", folder)
    words = ("run", "--json", *what, "--", "python", "-c", WORK)
    return str(json.loads(site.cli(*words, user=user).stdout)["id"])


def begins(site: Installation, user: str, job: str) -> None:
    """From here on it saves when told to."""

    def begun() -> bool:
        return "begun" in site.api("GET", f"/requests/{job}/log", user=user).text

    eventually(begun, f"{job} has begun")


def warning_of(site: Installation, request: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = site.request(request, user=USER)["warning"]
    return found


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def rows(site: Installation, query: str, *values: str) -> list[tuple[Any, ...]]:
    """From the database, which is readable while the service is down."""
    uri = f"{(site.state / 'carrel.db').as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=20)) as database:
        return database.execute(query, values).fetchall()


def charged(site: Installation) -> dict[str, float]:
    """Return device-seconds in the ledger by request."""
    return dict(
        rows(site, "SELECT request_id, SUM(device_seconds) FROM ledger GROUP BY request_id")
    )


def more(now: dict[str, float], before: dict[str, float], requests: set[str]) -> bool:
    """Return whether each of them has been charged since."""
    return all(now.get(each, 0.0) > before.get(each, 0.0) for each in requests)


def history(site: Installation, request: str) -> list[str]:
    """Return its budget events, in order."""
    found = rows(site, "SELECT kind FROM events WHERE request_id = ? ORDER BY id", request)
    return [kind for (kind,) in found if kind in TOLD]


def knows_that_little_is_left(site: Installation, request: str) -> None:
    eventually(lambda: history(site, request) == ["budget_low"], f"{request} is warned early")
    assert warning_of(site, request) is None


def is_asked_to_go(site: Installation, request: str) -> float:
    """Return when it is stopped, as its owner sees on the command line."""
    warning = eventually(lambda: warning_of(site, request), f"{request} is asked to go")
    assert USED_UP in site.cli("show", request, user=USER).stdout
    return float(warning["stops_at"])


def is_stopped_as_announced(site: Installation, request: str, stops_at: float) -> None:
    ended = site.wait_for(request, "cancelled", user=USER)
    assert ended["cause"]["code"] == "budget"
    assert ended["cause"]["message"] == f"Stopped, as announced: {USED_UP}"
    assert ended["ended_at"] >= stops_at
    assert history(site, request) == ["budget_low", "notice"]
    assert ended["cause"]["message"] in site.cli("show", request, user=USER).stdout


def give_what_is_nearly_used(site: Installation, running: set[str]) -> None:
    """A restarted service charges immediately, and a minute later again."""
    before = charged(site)
    site.kill("service")
    eventually(lambda: more(charged(site), before, running), "all are charged")
    hours = sum(charged(site).values()) / NEARLY / 3600
    where = ("--state", str(site.state))
    site.cli("group", "set", "cs101", "--budget", f"{hours:.6f}h/week", *where)


def usage(site: Installation) -> str:
    """Return what the teacher of the group sees."""
    return site.cli("usage", "--group", "cs101", user=TEACHER).stdout


def unsaved_notebook(person: Person, path: Path) -> Notebook:
    """Open it in the session, and type something into it."""
    person.page.goto(f"{person.site.service}/wait/-")
    person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
    notebook = Notebook.open(person, "lab/tree", path.name)
    notebook.page.locator(".jp-CodeCell .cm-content").first.click()
    notebook.page.keyboard.type("# not saved by hand ")
    return notebook


@pytest.mark.slow  # tests/hub/controller/test_budget_enforcement.py has the rule without a browser
@pytest.mark.browser
def test_running_work_is_warned_saved_and_stopped_when_the_budget_ends(
    browser: Browser, site: Installation
) -> None:
    home = site.state / "homes" / USER
    write_notebook(home / "work.ipynb", "print('first')")
    session = str(site.start_session(USER)["id"])
    job, last = submit(site, USER, "long"), submit(site, OTHER, "last")
    person = Person.sits_down(browser, site, USER)
    person.sign_in()
    notebook = unsaved_notebook(person, home / "work.ipynb")
    for user, each in ((USER, job), (OTHER, last)):
        begins(site, user, each)

    give_what_is_nearly_used(site, {session, job, last})
    for each in (session, job):
        knows_that_little_is_left(site, each)
    assert "cs101 has used 95% of its budget for this week." in usage(site)

    # The end of a job is charged immediately, which uses up the budget.
    (site.state / "homes" / OTHER / "last" / "enough").touch()
    site.wait_for(last, "succeeded", user=OTHER)
    with ThreadPoolExecutor() as side_by_side:
        stops_at = side_by_side.map(lambda each: is_asked_to_go(site, each), (session, job))
        toast = notebook.page.locator(".Toastify__toast", has_text=USED_UP)
        expect(toast).to_be_visible()
    eventually(lambda: "not saved by hand" in text(home / "work.ipynb"), "the notebook is saved")
    eventually((home / "long" / f"{job}.checkpoint").exists, "the job has saved")
    person.picture("budget-end-lab")
    assert "cs101 has used up its budget for this week: no request starts" in usage(site)

    for each, when in zip((session, job), stops_at, strict=True):
        is_stopped_as_announced(site, each, when)
    (budget,) = site.cli_json("usage", "--group", "cs101", user=TEACHER)["budgets"]
    assert budget["used"] == pytest.approx(sum(charged(site).values()), abs=0.01)
    assert (budget["running"], budget["left"]) == (0, 0)
    person.page.goto(f"{site.service}/usage")
    expect(person.page.locator("#budgets")).to_contain_text("has used up its budget for this week")
    person.picture("budget-end-usage")
    assert person.complaints == []
