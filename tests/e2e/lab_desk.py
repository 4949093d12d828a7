"""Carrel's panel, status item and commands in JupyterLab, as a student uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from playwright.sync_api import Locator, expect

from carrel.extensions.nbgrader.exchange import pack

from ..courses.notebook_samples import source
from .axe import findings
from .browser import SESSION_MS, Person, another_page
from .classes import DEMO, the_demo_is_ready
from .support import Installation

_PANEL = "#carrel-panel"


def assignment_is_released(site: Installation, name: str = "ps1") -> None:
    """Release an assignment with one question in the course of the demo."""
    the_demo_is_ready(site)
    form = {"files": pack({f"{name}.ipynb": source()})}
    made = site.api("POST", f"/exchange/assignment/{DEMO}/{name}", user="teacher", data=form)
    assert made.status_code == 200, made.text


@dataclass
class LabDesk:
    """JupyterLab in the window of a student."""

    person: Person

    @property
    def panel(self) -> Locator:
        return self.person.page.locator(_PANEL)

    @property
    def status(self) -> Locator:
        return self.person.page.locator(".carrel-status")

    @property
    def notebook(self) -> Locator:
        """The notebook in front."""
        return self.person.page.locator(".jp-NotebookPanel:visible")

    def notification(self, text: str) -> Locator:
        return self.person.page.locator(".Toastify__toast", has_text=text)

    def toolbar(self, name: str) -> None:
        """Press a button in the toolbar of the open notebook."""
        toolbar = self.notebook.locator(".jp-NotebookPanel-toolbar")
        toolbar.get_by_role("button", name=name, exact=True).click()

    def open_assignment_from_the_desk(self, name: str) -> None:
        page = self.person.page
        self.person.desk()
        with another_page(page):
            page.click(f"#assignment-{DEMO}-{name}")
        page.click("#open-assignment")
        self._notebook(name)

    def open_link(self, link: str, name: str) -> None:
        """Follow a link to the page of the service, and confirm it for the running session."""
        page = self.person.page
        page.goto(link)
        with another_page(page):
            page.click("#open-here")
        expect(self.notification("The files of the link are in")).to_be_visible(timeout=SESSION_MS)
        self._notebook(name)

    def open_failed_cell(self, job: str, *, number: int) -> None:
        page = self.person.page
        page.goto(f"{self.person.site.service}/requests/{job}")
        page.get_by_role("button", name=f"Open cell {number} in JupyterLab").click()
        expect(self.notification(f"The output of {job} was copied")).to_be_visible(
            timeout=SESSION_MS
        )

    def _notebook(self, name: str) -> None:
        page = self.person.page
        page.wait_for_url("**/lab**", timeout=SESSION_MS)
        tab = page.get_by_role("tab", name=re.compile(rf"^{name}\.ipynb"))
        expect(tab).to_be_visible(timeout=SESSION_MS)
        expect(self.notebook.locator(".jp-CodeCell").first).to_be_visible()

    def has_no_parts_for_teachers(self) -> None:
        page = self.person.page
        page.get_by_role("menuitem", name="Nbgrader").click()
        expect(page.get_by_role("menuitem", name="Assignment List")).to_be_visible()
        expect(page.get_by_role("menuitem", name="Formgrader")).to_have_count(0)
        expect(page.get_by_role("menuitem", name="Create Assignment")).to_have_count(0)
        page.keyboard.press("Escape")

    def write_into_first_cell(self, text: str) -> None:
        page = self.person.page
        self.notebook.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(text)

    def run_as_job(self, *, wrong: Mapping[str, str], right: Mapping[str, str]) -> str:
        """Submit the open notebook on CPU, first with wrong entries; return the job's id."""
        self.toolbar("Run as job")
        dialog = self.person.page.locator(".jp-Dialog")
        dialog.get_by_label("Devices").fill("0")
        for entries in (wrong, right):
            for label, text in entries.items():
                dialog.get_by_label(label).fill(text)
            dialog.get_by_role("button", name="Submit the job").click()
            if entries is wrong:
                expect(dialog.get_by_role("alert")).to_contain_text("is not a valid value")
        submitted = self.notification("Submitted as job")
        expect(submitted).to_be_visible()
        found = re.search(r"j-[a-z0-9]{8}", submitted.inner_text())
        assert found
        return found.group()

    def is_accessible(self) -> None:
        """Check the panel and the status item in both themes, and that nothing is cut off."""
        page = self.person.page
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            self._use(theme)
            for part in (_PANEL, ".carrel-status"):
                assert [str(each) for each in findings(page, within=part)] == []
            wide = page.eval_on_selector(_PANEL, "it => it.scrollWidth - it.clientWidth")
            assert wide <= 0, theme

    def _use(self, theme: str) -> None:
        page = self.person.page
        page.get_by_role("menuitem", name="Settings").click()
        for label in ("Theme", theme):
            page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{label}$")).click()
        expect(page.locator(f'body[data-jp-theme-name="{theme}"]')).to_have_count(1)
