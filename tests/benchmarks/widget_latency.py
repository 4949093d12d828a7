"""How soon a view shows what a kernel did: from a cell's end to the change in the browser.

One installation, one session in JupyterLab in Chromium with a ``JobView``, one job of many short
cells. Each cell prints the time of its end as its last act; the page writes down when the number
of done cells changes, by the clock of the same machine. A peer that polls (jupyter-scheduler's
list) has no figure here: it shows no cells.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from ..e2e.browser import Person, chromium
from ..e2e.support import Installation, installation
from ..e2e.widget_pages import Notebook, submit, write_notebook
from . import report
from .report import AtMost, Row, middle

USER = "student1"
CELLS = 60
GOAL_MS = 300.0
_CELL = "import time\ntime.sleep(0.4)\nprint('ENDED', {}, time.time())"
_OBSERVE = """() => {
  window.carrelSeen = {};
  const bar = [...document.querySelectorAll('.carrel-job [role=progressbar]')][0];
  new MutationObserver(() => {
    const done = bar.getAttribute('aria-valuenow');
    window.carrelSeen[done] ??= Date.now();
  }).observe(bar, {attributes: true, attributeFilter: ['aria-valuenow']});
}"""


def row(latencies: list[float], command: str) -> Row:
    return Row(
        name="cell's end to change in the browser, median",
        ours=middle(latencies),
        goal=AtMost(limit=GOAL_MS),
        unit="ms",
        command=command,
    )


def measure(site: Installation, cells: int) -> list[float]:
    """Milliseconds, one for each cell that the page saw end on its own."""
    home = site.state / "homes" / USER
    write_notebook(home / "many.ipynb", *[_CELL.format(n) for n in range(1, cells + 1)])
    site.start_session(USER, devices=0)
    with chromium() as browser:
        person = Person.sits_down(browser, site, USER)
        person.sign_in()
        person.page.goto(f"{site.service}/wait/-")
        person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=60_000)
        job = submit(site, home / "many.ipynb", devices=0, seconds=900)
        code = f"from carrel.extensions.widgets import JobView\nJobView({job!r})"
        write_notebook(home / "watch.ipynb", code)
        notebook = Notebook.open(person, "lab/tree", "watch.ipynb")
        notebook.run()
        notebook.view.get_by_text("runs (").wait_for(timeout=60_000)
        person.page.evaluate(_OBSERVE)
        site.wait_for(job, "succeeded", user=USER, within=120)
        person.page.wait_for_timeout(500)
        seen = _seen(person.page)
    ended = _ended(site, job)
    # The first ones may have ended before the page looked; one that jumped over is left out.
    return [seen[n] - 1000 * at for n, at in ended.items() if n in seen][1:]


def _seen(page: Page) -> dict[int, float]:
    found: dict[str, float] = page.evaluate("() => window.carrelSeen")
    return {int(done): at for done, at in found.items()}


def _ended(site: Installation, job: str) -> dict[int, float]:
    answer = site.api("GET", f"/requests/{job}/output", user=USER)
    text = json.dumps(answer.json())
    return {int(n): float(at) for n, at in re.findall(r"ENDED (\d+) (\d+\.\d+)", text)}


def latencies(cells: int = CELLS) -> list[float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        installation(Path(folder) / "state", "--simulated-devices", "1") as site,
    ):
        return measure(site, cells)


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.add_argument("--cells", type=int, default=CELLS, help="how many cells the job has")
    chosen = parser.parse_args()
    found: list[float] = []
    with report.measuring("widget", found):
        found += latencies(chosen.cells)
    command = report.command_line("tests.benchmarks.widget_latency", "--cells", str(chosen.cells))
    return report.finish([row(found, command)], as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
