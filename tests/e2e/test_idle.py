"""Sessions that hold a device and do nothing: warned, kept once, stopped; and those that work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from playwright.sync_api import expect

from carrel.hub.config import Settings, StateFolder

from ..faults.kernels import Kernel
from .browser import Person, chromium
from .support import Installation, eventually, installation
from .widget_pages import Notebook, write_notebook

USER = "student1"
IDLE = 16
COUNTDOWN = 16
SILENT = IDLE + 9
LOOP = "while :; do :; done"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    state = StateFolder.at(tmp_path_factory.mktemp("idle") / "state")
    state.create()
    Settings(idle_countdown_seconds=COUNTDOWN).save(state)
    with installation(state.root, "--simulated-devices", "2") as made:
        made.cli("group", "set", "cs101", "--idle", f"{IDLE}s", "--state", str(made.state))
        yield made


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
    return eventually(lambda: warning_of(site, request), "it is warned", within=90)


def told(site: Installation, request: str) -> list[str]:
    """What its history says of idleness, as far as it has come."""
    events = []
    with httpx.stream(
        "GET",
        f"{site.service}/api/v1/requests/{request}/events",
        headers={"Authorization": f"token {site.token(USER)}"},
        timeout=20,
    ) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                events.append(line.removeprefix("event: "))
            if line.startswith(":") or events[-1:] == ["end"]:
                break
    return [kind for kind in events if kind.startswith("idle_")]


@pytest.mark.browser
def test_an_open_tab_is_warned_kept_once_and_then_stopped_with_its_notebook_saved(
    site: Installation, home: Path
) -> None:
    write_notebook(home / "work.ipynb", "print('first')")
    with chromium() as browser:
        person = Person.sits_down(browser, site, USER)
        person.sign_in()
        request = session(site)
        person.page.goto(f"{site.service}/wait/-")
        person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=60_000)
        notebook = Notebook.open(person, "lab/tree", "work.ipynb")
        notebook.run()
        page = notebook.page
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.type("# not saved by hand ")

        seen = warned(site, request)
        assert seen["can_keep"]
        assert any("ran no cell" in sentence for sentence in seen["seen"]), seen
        toast = page.locator(".Toastify__toast", has_text="done nothing")
        expect(toast).to_be_visible(timeout=20_000)
        eventually(lambda: "not saved by hand" in text(home / "work.ipynb"), "it is saved")
        person.picture("idle-warning-lab")
        toast.get_by_role("button", name="Keep it").click()
        eventually(lambda: warning_of(site, request) is None, "it is kept")
        expect(toast).to_be_hidden(timeout=20_000)
        assert person.complaints == []
        Notebook.open(person, "notebooks", "work.ipynb")
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.type("# nor this ")

        assert not warned(site, request)["can_keep"]
        refused = site.api("POST", f"/requests/{request}/keep", user=USER)
        assert refused.status_code == 409
        assert "once already" in refused.json()["detail"]
        expect(toast).to_be_visible(timeout=20_000)
        eventually(lambda: "nor this" in text(home / "work.ipynb"), "it is saved")
        person.picture("idle-warning-notebook")
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.type("# the last words ")
        ended = site.wait_for(request, "cancelled", user=USER, within=60)

    assert ended["cause"]["code"] == "idle"
    assert "without work" in ended["cause"]["message"]
    assert "the last words" in text(home / "work.ipynb")
    assert told(site, request) == ["idle_warning", "idle_kept", "idle_warning"]
    free = site.api("GET", "/pool", user=USER).json()["free"]
    assert free == 2


def text(path: Path) -> str:
    return json.dumps(nbformat.read(path, as_version=4))


def test_a_silent_cell_is_not_idle_and_a_warning_goes_when_it_begins(site: Installation) -> None:
    """No tab is open. The cells say nothing for longer than the idle time."""
    request = session(site)
    warned(site, request)
    kernel = Kernel.start(site, USER)
    kernel.run(f"import time; end = time.time() + {SILENT}\nwhile time.time() < end: pass")
    assert warning_of(site, request) is None
    assert told(site, request) == ["idle_warning", "idle_over"]
    kernel.run(f"time.sleep({SILENT})")
    assert warning_of(site, request) is None
    kernel.run(
        f"import subprocess; subprocess.Popen(['timeout', '{SILENT}', 'sh', '-c', {LOOP!r}])"
    )
    eventually(lambda: not loops(site, request), "the script in the background ends", within=60)
    assert told(site, request) == ["idle_warning", "idle_over"]
    shown = site.cli("show", request, user=USER).stdout
    assert "Warning" not in shown
    warned(site, request)
    shown = site.cli("show", request, user=USER).stdout
    assert "Warning:" in shown
    assert "unless something runs in it, or it is kept" in shown
    site.api("DELETE", f"/requests/{request}", user=USER)


def loops(site: Installation, request: str) -> bool:
    lease = site.request(request, user=USER)["lease"]["id"]
    return any(LOOP in process.cmdline() for process in site.processes_of(lease))
