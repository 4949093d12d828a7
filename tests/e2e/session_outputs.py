"""The outputs of cells that run while no page is open."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator

from .browser import SESSION_MS, Person
from .widget_pages import Notebook

PRINTS = """import time
from pathlib import Path
def wait(name):
    while not Path(name).exists():
        time.sleep(0.05)
print('at first')
wait({0!r})
for number in range(3):
    print('while away', number, flush=True)
wait({1!r})
print('at last')"""
AWAY = "at first\nwhile away 0\nwhile away 1\nwhile away 2\n"


@dataclass
class Outputs:
    """The outputs that a notebook shows, and those in the journals of the session."""

    person: Person
    home: Path

    def journal(self, path: str) -> str:
        """Return what the journals of this notebook hold."""
        folders = (self.home / ".local/share/jupyter/carrel/outputs").glob("*/")
        files = [
            file
            for folder in folders
            if (folder / "notebook.json").is_file()
            and json.loads((folder / "notebook.json").read_text()) == path
            for file in folder.glob("*.jsonl")
        ]
        return "".join(file.read_text() for file in files)

    def of(self, cell: int) -> Locator:
        return self.person.page.locator(".jp-CodeCell").nth(cell).locator(".jp-OutputArea-output")

    def prompt(self, cell: int) -> Locator:
        return self.person.page.locator(".jp-CodeCell").nth(cell).locator(".jp-InputPrompt")

    @property
    def unsaved(self) -> Locator:
        return self.person.page.locator(".lm-TabBar-tab.jp-mod-dirty")

    def leave(self) -> None:
        """Close the tab."""
        page = self.person.page
        self.person.page = page.context.new_page()
        page.close()

    def come_back(self, path: str, *, kind: str = "lab/tree") -> Notebook:
        """Open the notebook, whether or not its kernel is busy."""
        person = self.person
        person.page.goto(f"{person.site.url}/user/{person.name}/{kind}/{path}?reset")
        person.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=SESSION_MS)
        return Notebook(person, person.page)
