"""Run axe-core on a page in a browser, and report accessibility violations.

``make test`` installs it from the lock file here. The script is injected over the browser's
debugging protocol, which no Content-Security-Policy blocks: the page is checked unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from carrel.hub.supervisor.proxy import npm_ci

from ...requirements import need

_SEVERE = frozenset({"serious", "critical"})
_SCRIPT = Path(sys.prefix) / "share" / "carrel" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async ([rules, within]) => {
  const only = rules.length ? {runOnly: {type: "rule", values: rules}} : {};
  const found = await axe.run(within || document, {resultTypes: ["violations"], ...only});
  return found.violations.map((each) => ({
    rule: each.id, impact: each.impact, help: each.help,
    nodes: each.nodes.map((node) => ({
      target: node.target.flat().join(" "), summary: node.failureSummary || "",
    })),
  }));
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A violation: one rule and one element of the page."""

    rule: str
    impact: str
    target: str
    summary: str

    @property
    def severe(self) -> bool:
        return self.impact in _SEVERE

    def __str__(self) -> str:
        return f"{self.impact} {self.rule} at {self.target}: {' '.join(self.summary.split())}"


def install() -> None:
    """Raises BackendFailed."""
    npm_ci(Path(__file__).parent, _SCRIPT.parents[2])


OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules whose result depends on the theme."""


def findings(page: Page, rules: Sequence[str] = (), *, within: str = "") -> list[Finding]:
    """Return all violations of the named rules, or of all rules, including minor ones.

    Args:
        within: selector of a part of the page.
    """
    need("browser", _SCRIPT.is_file(), "axe-core is missing (python -m tests.e2e.axe)")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_SCRIPT.read_text())
    return [
        Finding(
            rule=each["rule"],
            impact=each["impact"] or "",
            target=node["target"],
            summary=node["summary"],
        )
        for each in page.evaluate(_RUN, [list(rules), within])
        for node in each["nodes"]
    ]
