"""The same explanation reads the same in a terminal, on a page and in a view.

The scripts of the page and of the views run in Node, at the time and in the zone of the terminal.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from carrel import extensions, hub
from carrel.extensions.widgets.pool_state import why_facts
from carrel.hub.cli import cli
from carrel.hub.cli.jobs import why as jobs_why
from carrel.hub.messages import units
from carrel.hub.requests.explanation import why_out
from carrel.hub.scheduling.explanation.explanation import Explanation
from carrel.hub.scheduling.model.plan import Estimate, Reason, Wait
from carrel.hub.scheduling.model.snapshot import BudgetBalance, ReservedSpan
from carrel.hub.schemas.explanation import WhyOut
from carrel.hub.supervisor.proxy import node

from ..fake_service import PREFIX as API
from ..fake_service import FakeService
from ..hub.scheduling.values import pending
from ..hub.web.fakes import PREFIX, World, session

NOW = 1795240800.0
"""Six in the morning, UTC: until noon every clock shows the same digits."""
MINUTE = 60.0
SHARED = Path(extensions.__path__[0]) / "widgets/static/shared.js"
OF_PAGES = Path(hub.__path__[0]) / "web/static/carrel.js"
FIXED = f"""
globalThis.Date = class extends Date {{
  constructor(...given) {{ super(...(given.length ? given : [{NOW * 1000}])); }}
  static now() {{ return {NOW * 1000}; }}
}};
"""
PAGE = """
const times = GIVEN, heard = {};
globalThis.document = {
  addEventListener: (name, call) => (heard[name] ??= call), querySelector: () => null,
  querySelectorAll: (what) => (what === "time[data-show]" ? times : []), getElementById: () => null,
};
globalThis.window = { addEventListener() {} };
globalThis.setInterval = () => 0;
SCRIPT
heard.DOMContentLoaded();
console.log(JSON.stringify(times.map((each) => each.textContent)));
"""

Run = Callable[[str], Any]


@pytest.fixture
def run() -> Run:
    """What a script prints, as JSON."""
    program = node()
    if program is None:
        pytest.skip("there is no Node")

    def ran(script: str) -> Any:
        done = subprocess.run(
            [program, "-"], input=FIXED + script, env={"TZ": "UTC"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip  # grouped by meaning
        return json.loads(re.sub(r"(?:\s|\\u202f)AM\b", "", done.stdout))

    return ran


def explanation(latest: float, *, known: bool = True) -> Explanation:
    """Held by everything that has a time."""
    estimate = Estimate(at=NOW + 90 * MINUTE, latest=NOW + latest) if known else None
    return Explanation(
        request=pending("s-aaaaaaaa"),
        wait=Wait(
            request_id="s-aaaaaaaa", place=30, reason=Reason.RESERVATION,
            detail="cs101", estimate=estimate,
        ),
        reserved=ReservedSpan(
            id="r", group="cs101", devices=1,
            starts_at=NOW + 30 * MINUTE, ends_at=NOW + 150 * MINUTE,
        ),
        budget=BudgetBalance(group="cs101", budget=3600, used=3600, refills_at=NOW + 345 * MINUTE),
    )  # fmt: skip  # grouped by meaning


SPAN, REFILL = "Reserved from 06:30 to 08:30.", "The budget is renewed: 11:45."


@pytest.mark.parametrize(
    ("found", "start"),
    [
        (explanation(90 * MINUTE), "Expected start: 07:30 (in about 1 h 30 min)."),
        (
            explanation(240 * MINUTE),
            "Expected start: 07:30 (in about 1 h 30 min), at the latest 10:00.",
        ),
        (explanation(0, known=False), "The start cannot be estimated yet."),
    ],
)
def test_times_of_a_wait_read_the_same_everywhere(
    found: Explanation, start: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = why_out(found, lambda _group: True, yours=True)
    lines = (SPAN, REFILL, start)
    assert all(line in in_a_terminal(why, monkeypatch) for line in lines)
    assert all(line in on_a_page(why, run) for line in lines)
    view = f"const found = {json.dumps(why_facts(why, NOW))};"
    said = "console.log(JSON.stringify([...found.dated, found.start].map(dated)));"
    assert run(SHARED.read_text() + view + said) == [*lines]


def in_a_terminal(why: WhyOut, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with FakeService() as service, monkeypatch.context() as patch:
        service.add(why.request_id)
        answer = why.model_dump(mode="json")
        path = f"{API}/requests/{why.request_id}/why"
        service.extra["GET", path] = lambda handler: handler.say(200, answer)
        patch.setattr(jobs_why, "time", SimpleNamespace(time=lambda: NOW))
        for name, value in (
            ("CARREL_URL", service.url), ("CARREL_TOKEN", "a-token"), ("TZ", "UTC")
        ):  # fmt: skip  # grouped by meaning
            patch.setenv(name, value)
        done = CliRunner().invoke(cli, ["why", why.request_id])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def on_a_page(why: WhyOut, run: Run) -> list[str]:
    world = World()
    world.app.state.web = replace(world.web, clock=lambda: NOW)
    world.service.put(session(id=why.request_id))
    world.service.reasons[why.request_id] = why
    html = world.browser().get(f"{PREFIX}requests/{why.request_id}/why").text
    one = re.compile(r'<time datetime="([^"]*)" data-show="([^"]*)">[^<]*</time>')
    times = [
        {"dateTime": at, "dataset": {"show": show}, "textContent": "", "title": ""}
        for at, show in one.findall(html)
    ]
    script = PAGE.replace("GIVEN", json.dumps(times)).replace("SCRIPT", OF_PAGES.read_text())
    told = iter(run(script))
    html = one.sub(lambda _time: next(told), html)
    return [unescape(each).strip() for each in re.findall(r"<(?:p|li)\b[^>]*>([^<]*)<", html)]


def test_how_far_ahead_a_start_is_reads_the_same_everywhere(run: Run) -> None:
    ahead = [-60.0, 4.0, 5.0, 59.4, 59.6, 90.0, 3570.0, 3599.0, 3630.0, 5400.0, 7199.0,
             35999.0, 37800.0, 86399.0, 86400.0, 1e6]  # fmt: skip  # a table
    words = [units.coming(seconds) for seconds in ahead]
    assert run(f"{SHARED.read_text()}console.log(JSON.stringify({ahead}.map(comingIn)));") == words
    # A page is told whole seconds.
    whole = [float(int(seconds)) for seconds in ahead]
    times = [
        {"dateTime": (NOW + each) * 1000, "dataset": {"show": "in"}, "textContent": "", "title": ""}
        for each in whole
    ]
    script = PAGE.replace("GIVEN", json.dumps(times)).replace("SCRIPT", OF_PAGES.read_text())
    assert run(script) == [units.coming(seconds) for seconds in whole]
