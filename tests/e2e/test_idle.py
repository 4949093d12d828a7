"""Idle sessions with a device: warned, kept once, stopped; and active ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder

from ..faults.kernels import Kernel
from .browser import SESSION_MS, Person, chromium
from .support import Installation, eventually, installation
from .widget_pages import Notebook, write_notebook

USER = "student1"
IDLE = 16
COUNTDOWN = 50
"""A tab saves ten seconds before the end: the test has 40 seconds before that."""
SILENT = IDLE + 9
LONG = 3600
LOOP = "while :; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.1; done"
COMPUTES = "while time.time() < end:\n    sum(range(500_000)); time.sleep(0.05)"
"""A part of a core: the other tests need the rest."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    state = StateFolder.at(tmp_path_factory.mktemp("idle") / "state")
    state.create()
    Settings(idle_countdown_seconds=COUNTDOWN).save(state)
    with installation(state.root, "--simulated-devices", "2") as made:
        yield made


def idle_after(site: Installation, seconds: int) -> None:
    """Set the idle time of the group; a long one during preparation."""
    site.cli("group", "set", "cs101", "--idle", f"{seconds}s", "--state", str(site.state))


@pytest.fixture
def home(site: Installation) -> Path:
    return site.state / "homes" / USER


def session(site: Installation, server: str = "") -> str:
    made = site.start_session(USER, server)["id"]
    site.wait_for(made, "running", user=USER)
    return str(made)


def warning_of(site: Installation, request: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = site.request(request, user=USER)["warning"]
    return found


def warned(site: Installation, request: str) -> dict[str, Any]:
    return eventually(lambda: warning_of(site, request), "it is warned", within=120)


def told(site: Installation, request: str) -> list[str]:
    """Return the idle events of the whole history of an ended request."""
    events = site.api("GET", f"/requests/{request}/events", user=USER).text.splitlines()
    kinds = [line.removeprefix("event: ") for line in events if line.startswith("event: ")]
    assert kinds[-1] == "end"
    return [kind for kind in kinds if kind.startswith("idle_")]


def told_so_far(site: Installation, request: str) -> list[str]:
    """From the database: the stream of a running request does not end."""
    uri = f"{(site.state / 'carrel.db').as_uri()}?mode=ro"
    query = "SELECT kind FROM events WHERE request_id = ? AND kind LIKE 'idle_%' ORDER BY id"
    with closing(sqlite3.connect(uri, uri=True, timeout=20)) as database:
        return [kind for (kind,) in database.execute(query, [request])]


@pytest.mark.browser
def test_an_idle_session_is_warned_kept_once_and_stopped_with_its_notebook_saved(
    site: Installation, home: Path
) -> None:
    write_notebook(home / "work.ipynb", "print('first')")
    with chromium() as browser:
        person = Person.sits_down(browser, site, USER)
        person.sign_in()
        idle_after(site, LONG)
        request = session(site)
        person.page.goto(f"{site.service}/wait/-")
        person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
        notebook = Notebook.open(person, "lab/tree", "work.ipynb")
        notebook.run()
        page = notebook.page
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.type("# not saved by hand ")

        idle_after(site, IDLE)
        seen = warned(site, request)
        assert seen["can_keep"]
        assert any("ran no cell" in sentence for sentence in seen["seen"]), seen
        toast = page.locator(".Toastify__toast", has_text="been idle")
        expect(toast).to_be_visible()
        eventually(lambda: "not saved by hand" in text(home / "work.ipynb"), "it is saved")
        person.picture("idle-warning-lab")
        toast.get_by_role("button", name="Keep it").click()
        eventually(lambda: warning_of(site, request) is None, "it is kept")
        idle_after(site, LONG)
        expect(toast).to_be_hidden()
        assert person.complaints == []
        Notebook.open(person, "notebooks", "work.ipynb")
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.type("# nor this ")

        idle_after(site, IDLE)
        assert not warned(site, request)["can_keep"]
        refused = site.api("POST", f"/requests/{request}/keep", user=USER)
        assert refused.status_code == 409
        assert "only once" in refused.json()["detail"]
        expect(toast).to_be_visible()
        eventually(lambda: "nor this" in text(home / "work.ipynb"), "it is saved")
        person.picture("idle-warning-notebook")
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.type("# the last words ")
        ended = site.wait_for(request, "cancelled", user=USER, within=COUNTDOWN + 90)

    assert ended["cause"]["code"] == "idle"
    assert "being idle" in ended["cause"]["message"]
    assert "the last words" in text(home / "work.ipynb")
    assert told(site, request) == ["idle_warning", "idle_kept", "idle_warning"]
    free = site.api("GET", "/pool", user=USER).json()["free"]
    assert free == 2


def text(path: Path) -> str:
    """Read it as it is: JupyterLab may be writing it."""
    return path.read_text(encoding="utf-8")


@pytest.mark.slow  # tests/hub/controller/test_idle_culling.py has the rule without a browser
def test_a_silent_cell_is_not_idle_and_withdraws_the_warning(site: Installation) -> None:
    """No tab is open. The cells produce no output for longer than the idle time."""
    idle_after(site, IDLE)
    request = session(site)
    warned(site, request)
    kernel = Kernel.start(site, USER)
    kernel.run(f"import time; end = time.time() + {SILENT}\n{COMPUTES}")
    assert warning_of(site, request) is None
    assert told_so_far(site, request) == ["idle_warning", "idle_over"]
    kernel.run(f"time.sleep({SILENT})")
    assert warning_of(site, request) is None
    kernel.run(
        f"import subprocess; subprocess.Popen(['timeout', '{SILENT}', 'sh', '-c', {LOOP!r}])"
    )
    shown = site.cli("show", request, user=USER).stdout
    assert "Warning" not in shown
    eventually(lambda: not loops(site, request), "the script in the background ends", within=90)
    assert told_so_far(site, request) == ["idle_warning", "idle_over"]
    warned(site, request)
    shown = site.cli("show", request, user=USER).stdout
    assert "Warning:" in shown
    assert "unless it becomes active, or it is kept" in shown
    site.api("DELETE", f"/requests/{request}", user=USER)


def loops(site: Installation, request: str) -> bool:
    lease = site.request(request, user=USER)["lease"]["id"]
    return any(LOOP in process.cmdline() for process in site.processes_of(lease))
