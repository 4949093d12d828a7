"""Notebook pages of a session in a browser: type, run and read cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Locator, Page, expect

from .browser import SESSION_MS, Person
from .support import Installation, eventually

_TAKEN_MS = 3_000
"""After so long without effect a key is pressed again."""


def _empty() -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}}
    )


def notebook_text(*cells: str) -> str:
    """Return a notebook whose cells have the same ids each time."""
    node = _empty()
    node.cells = [nbformat.v4.new_code_cell(each, id=f"c{at}") for at, each in enumerate(cells)]
    return nbformat.writes(node)


def write_notebook(path: Path, *cells: str, parameters: str = "") -> None:
    node = _empty()
    if parameters:
        first = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
        node.cells.append(first)
    node.cells += [nbformat.v4.new_code_cell(cell) for cell in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(node, path)


def submit(site: Installation, path: Path, *, user: str = "student1", **more: Any) -> str:
    """Submit a CPU job through the API, without the command line's half second."""
    body = {
        "group": "cs101",
        "notebook": {"name": path.name, "content": path.read_text()},
        **more,
    }
    answer = site.api("POST", "/requests", user=user, json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@dataclass
class Notebook:
    """One notebook of student1's session, open in JupyterLab or Notebook 7."""

    person: Person
    page: Page

    @classmethod
    def open(cls, person: Person, kind: str, path: str) -> Notebook:
        # JupyterLab would restore what an earlier test had open, in front of this.
        person.page.goto(f"{person.site.url}/user/{person.name}/{kind}/{path}?reset")
        made = cls(person, person.page)
        made.ready()
        return made

    def ready(self) -> None:
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=SESSION_MS)
        # A cell that runs earlier opens a dialog about its kernel.
        name = self.page.locator(".jp-Toolbar-kernelName").first
        expect(name).to_contain_text("Python", timeout=SESSION_MS)
        self.kernel_is("idle")

    def kernel_is(self, status: str) -> None:
        self.page.locator(
            f'.jp-Notebook-ExecutionIndicator[data-status="{status}"], '
            f'.jp-NotebookKernelStatus:has-text("{status}"), [data-status="{status}"]'
        ).first.wait_for(state="attached", timeout=SESSION_MS)

    def run(self, number: int = 0) -> None:
        """Repeat while the page does not listen to keys yet."""
        cell = self.page.locator(".jp-CodeCell").nth(number)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()

        def taken() -> bool:
            asked = self.page.locator(".jp-Dialog .jp-mod-accept")
            if asked.is_visible():  # accept the offered kernel
                asked.click()
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            try:
                expect(prompt).not_to_have_text(before, use_inner_text=True, timeout=_TAKEN_MS)
            except AssertionError:
                return False
            return True

        eventually(taken, "the cell runs", within=90)

    @property
    def view(self) -> Locator:
        return self.page.locator(".carrel-job").last

    def job(self) -> str:
        """Return the id in the newest view."""
        shows(self.view, "j-")
        found = re.search(r"j-[a-z0-9]{8}", self.view.inner_text())
        assert found, self.view.inner_text()
        return found.group()

    def restart_kernel_by_hand(self) -> None:
        """Use JupyterLab's button."""
        self.page.locator('.jp-Toolbar [data-jp-item-name="restart"]').click()
        self.page.locator(".jp-Dialog .jp-mod-accept").click()

    def cancel_by_mouse(self) -> None:
        """The focus stays in place when the question opens."""
        button = self.view.get_by_role("button", name="Cancel job")
        button.hover()  # comes when the page no longer moves
        before = button.bounding_box()
        button.click()
        yes = self.view.get_by_role("button", name="Yes, cancel it")
        expect(yes).to_be_visible()
        assert button.bounding_box() == before
        yes.click()

    def restart_kernel(self) -> None:
        """Through the server's API, as any client can."""
        self.page.evaluate(
            """async (base) => {
              const xsrf = document.cookie.split('; ').find((c) => c.startsWith('_xsrf='));
              const headers = {'X-XSRFToken': xsrf ? xsrf.slice(6) : ''};
              const kernels = await (await fetch(base + 'api/kernels', {headers})).json();
              for (const kernel of kernels)
                await fetch(base + 'api/kernels/' + kernel.id + '/restart',
                            {method: 'POST', headers});
            }""",
            f"/user/{self.person.name}/",
        )


def save(page: Page) -> None:
    """Press the key until the server has it."""
    with page.expect_response(
        lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url
    ):
        page.keyboard.press("Control+s")


def shows(view: Locator, text: str, *, within: float = 90.0) -> None:
    expect(view).to_contain_text(text, timeout=within * 1000)
