"""How much later JupyterLab is ready with Carrel's extension than without it.

One installation and one CPU session. Chromium opens JupyterLab again and again with an empty cache,
by turns with the extension and without: then it is removed from the list of extensions in the page
on its way to the browser. Ready means that the splash screen is gone: JupyterLab has activated all
extensions and restored its layout.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Route, StorageState

from ..e2e.browser import PATIENCE_MS, SESSION_MS, Person, chromium
from ..e2e.support import Installation, installation
from . import report
from .report import NotWorseThan, Row, middle

USER = "student1"
ROUNDS = 10
MORE_MS = 150.0
_EXTENSION = "carrel"
_CONFIG = re.compile(r'(<script id="jupyter-config-data"[^>]*>)(.*?)(</script>)', re.DOTALL)
_OBSERVE = """new MutationObserver(() => {
  if (document.getElementById("jupyterlab-splash")) window.carrelSplash = true;
  else if (window.carrelSplash) window.carrelReady ??= performance.now();
}).observe(document, {childList: true, subtree: true})"""


def row(ours: list[float], peer: list[float], command: str) -> Row:
    return Row(
        name="JupyterLab ready with the extension, beside without, median",
        ours=middle(ours),
        goal=NotWorseThan(peer=middle(peer), times=1.0, or_more=MORE_MS),
        unit="ms",
        command=command,
    )


def measure(site: Installation, rounds: int, ours: list[float], peer: list[float]) -> None:
    """Add milliseconds to both lists."""
    site.start_session(USER, devices=0)
    with chromium() as browser:
        person = Person.sits_down(browser, site, USER)
        person.sign_in()
        person.page.goto(f"{site.service}/wait/-")
        person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
        signed_in = person.page.context.storage_state()
        person.page.context.close()
        url = f"{site.url}/user/{USER}/lab"
        _load(browser, url, signed_in, extension=True)  # the server's own caches
        for turn in range(rounds):
            for extension in (True, False) if turn % 2 else (False, True):
                took = _load(browser, url, signed_in, extension=extension)
                (ours if extension else peer).append(took)
                report.note(f"{'with' if extension else 'without'}: {took:.0f} ms")


def _load(browser: Browser, url: str, signed_in: StorageState, *, extension: bool) -> float:
    context = browser.new_context(storage_state=signed_in, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(_OBSERVE)
    page = context.new_page()
    # Also the page with the extension takes this way, so that both have its costs.
    page.route(url, lambda route: _pass_on(route, extension=extension))
    page.goto(url)
    took = page.wait_for_function("() => window.carrelReady").json_value()
    present = page.locator('.jp-SideBar [data-id="carrel-panel"]').count() > 0
    context.close()
    assert present == extension, "the extension is not as it should be"
    return float(took)


def _pass_on(route: Route, *, extension: bool) -> None:
    answer = route.fetch()
    found = _CONFIG.search(answer.text())
    assert found, "the page of JupyterLab has no configuration"
    config = json.loads(found[2])
    if not extension:
        config["federated_extensions"] = [
            each for each in config["federated_extensions"] if each["name"] != _EXTENSION
        ]
    body = _CONFIG.sub(lambda it: it[1] + json.dumps(config) + it[3], answer.text())
    route.fulfill(response=answer, body=body)


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is opened")
    chosen = parser.parse_args()
    ours, peer = list[float](), list[float]()
    with (
        report.measuring("JupyterLab", ours, peer),
        tempfile.TemporaryDirectory() as folder,
        installation(Path(folder) / "state") as site,
    ):
        measure(site, chosen.rounds, ours, peer)
    command = report.command_line("tests.benchmarks.lab_load", "--rounds", str(chosen.rounds))
    return report.finish([row(ours, peer, command)], as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
