"""Outputs of cells that a page missed; a tab that was closed is in ``test_widgets``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import WebSocketRoute, expect

from .browser import SESSION_MS, Person
from .session_outputs import AWAY, PRINTS, Outputs
from .support import Installation, eventually
from .widget_pages import Notebook, save, write_notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

USER = "student1"


@pytest.fixture
def outputs(person: Person, site: Installation) -> Outputs:
    """Those of a CPU session."""
    open_session(person, site)
    return Outputs(person, site.state / "homes" / USER)


def open_session(person: Person, site: Installation) -> str:
    known = site.api("GET", "/requests?kind=session", user=USER).json()["requests"]
    running = [session["id"] for session in known if not session["ended"]]
    request = running[0] if running else site.start_session(USER, devices=0)["id"]
    person.page.goto(f"{site.service}/wait/-")
    person.page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
    return str(request)


def beside(person: Person) -> Person:
    """The same user in another tab."""
    return replace(person, page=person.page.context.new_page())


def prints(outputs: Outputs, name: str, *cells: str) -> tuple[Path, Path]:
    """Write a notebook whose first cell waits for two files; return them."""
    first, second = outputs.home / f"{name}-1", outputs.home / f"{name}-2"
    write_notebook(outputs.home / f"{name}.ipynb", PRINTS.format(str(first), str(second)), *cells)
    return first, second


def printed(outputs: Outputs, name: str) -> None:
    eventually(lambda: "while away 2" in outputs.journal(f"{name}.ipynb"), "the cell prints")


def is_saved(outputs: Outputs, name: str) -> None:
    eventually(lambda: not outputs.journal(f"{name}.ipynb"), "the saved notebook has it")


@dataclass
class Network:
    """Connections to kernels, which may lose messages and break."""

    loses: bool = False
    pages: list[WebSocketRoute] = field(default_factory=list)

    def connect(self, page: WebSocketRoute) -> None:
        server = page.connect_to_server()
        page.on_message(server.send)
        server.on_message(lambda message: None if self.loses else page.send(message))
        self.pages.append(page)

    def breaks(self) -> None:
        self.pages[-1].close(code=4000, reason="The network is back.")


def test_what_was_lost_with_a_connection_is_taken_from_the_journal(outputs: Outputs) -> None:
    first, second = prints(outputs, "network", "print('next')")
    network = Network()
    page = outputs.person.page
    page.route_web_socket(re.compile(".*/channels.*"), network.connect)
    notebook = Notebook.open(outputs.person, "lab/tree", "network.ipynb")
    notebook.run(0)
    notebook.run(1)
    expect(outputs.of(0)).to_have_text("at first\n")
    network.loses = True
    first.touch()
    printed(outputs, "network")
    network.loses = False
    network.breaks()
    expect(outputs.of(0)).to_have_text(AWAY)
    second.touch()
    expect(outputs.of(0)).to_have_text(f"{AWAY}at last\n")
    expect(outputs.of(1)).to_have_text("next\n")
    expect(outputs.prompt(0)).to_have_text("[1]:")
    expect(outputs.prompt(1)).to_have_text("[2]:")
    save(page)
    is_saved(outputs, "network")


def test_two_tabs_show_each_line_once_and_only_the_one_that_ran_it_is_unsaved(
    outputs: Outputs,
) -> None:
    first, second = prints(outputs, "twice")
    notebook = Notebook.open(outputs.person, "lab/tree", "twice.ipynb")
    save(notebook.page)
    notebook.run(0)
    first.touch()
    expect(outputs.of(0)).to_have_text(AWAY)
    other = Outputs(beside(outputs.person), outputs.home)
    other.come_back("twice.ipynb")
    expect(other.of(0)).to_have_text(AWAY)
    second.touch()
    for each in (outputs, other):
        expect(each.of(0)).to_have_text(f"{AWAY}at last\n")
    expect(outputs.unsaved).to_have_count(1)
    expect(other.prompt(0)).to_have_text("[1]:")
    expect(other.unsaved).to_have_count(0)
    save(outputs.person.page)
    is_saved(outputs, "twice")
    # What one tab runs later is not put into the other one.
    notebook.run(0)
    expect(outputs.prompt(0)).to_have_text("[2]:")
    expect(outputs.of(0)).to_have_text(f"{AWAY}at last\n")
    expect(other.prompt(0)).to_have_text("[1]:")
    expect(other.of(0)).to_have_text(f"{AWAY}at last\n")
    save(outputs.person.page)
    other.person.page.close()


def test_the_output_of_a_cell_that_is_gone_is_shown_and_added_on_request(
    outputs: Outputs,
) -> None:
    first, second = prints(outputs, "gone", "print('stays')")
    path = outputs.home / "gone.ipynb"
    notebook = Notebook.open(outputs.person, "lab/tree", "gone.ipynb")
    notebook.run(0)
    notebook.run(1)
    outputs.leave()
    first.touch()
    printed(outputs, "gone")
    node = nbformat.read(path, 4)
    del node.cells[0]
    nbformat.write(node, path)

    page = outputs.come_back("gone.ipynb").page
    toast = page.locator(".Toastify__toast", has_text="output of a cell was kept")
    expect(toast).to_be_visible()
    outputs.person.picture("outputs-gone-notice")
    toast.get_by_role("button", name="Show").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("while away 2")
    outputs.person.picture("outputs-gone-dialog")
    dialog.get_by_role("button", name="Add to the notebook").click()
    expect(outputs.of(1)).to_have_text(AWAY)
    second.touch()
    expect(outputs.of(1)).to_have_text(f"{AWAY}at last\n")
    expect(outputs.of(0)).to_have_text("stays\n")
    save(page)
    is_saved(outputs, "gone")


def test_a_newer_result_of_another_program_is_not_written_over(outputs: Outputs) -> None:
    path = outputs.home / "newer.ipynb"
    write_notebook(path, "print('of the session')")
    notebook = Notebook.open(outputs.person, "lab/tree", "newer.ipynb")
    notebook.run()
    expect(outputs.of(0)).to_have_text("of the session\n")
    outputs.leave()
    node = nbformat.read(path, 4)
    node.cells[0].execution_count = 7
    node.cells[0].outputs = [nbformat.v4.new_output("stream", text="of another program\n")]
    nbformat.write(node, path)

    page = outputs.come_back("newer.ipynb").page
    toast = page.locator(".Toastify__toast", has_text="output of a cell was kept")
    expect(outputs.of(0)).to_have_text("of another program\n")
    toast.get_by_role("button", name="Show").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("of the session")
    dialog.get_by_role("button", name="Close").click()
    toast.get_by_role("button", name="Show").click()
    dialog.get_by_role("button", name="Discard").click()
    is_saved(outputs, "newer")
    expect(toast).to_have_count(0)
    expect(outputs.of(0)).to_have_text("of another program\n")


def test_a_restart_of_the_kernel_discards_what_was_not_saved(outputs: Outputs) -> None:
    write_notebook(outputs.home / "restart.ipynb", "print('old')")
    notebook = Notebook.open(outputs.person, "lab/tree", "restart.ipynb")
    notebook.run()
    expect(outputs.of(0)).to_have_text("old\n")
    assert outputs.journal("restart.ipynb")
    notebook.restart_kernel_by_hand()
    eventually(lambda: not outputs.journal("restart.ipynb"), "it is cleared")
    outputs.leave()
    outputs.come_back("restart.ipynb").kernel_is("idle")
    expect(outputs.of(0)).to_have_count(0)


def test_what_an_ended_session_left_is_shown_by_notebook_7_in_the_next_one(
    outputs: Outputs, site: Installation
) -> None:
    first, _ = prints(outputs, "ended")
    notebook = Notebook.open(outputs.person, "lab/tree", "ended.ipynb")
    notebook.run()
    outputs.leave()
    first.touch()
    printed(outputs, "ended")
    ended = open_session(outputs.person, site)
    outputs.person.page.goto("about:blank")
    site.api("DELETE", f"/requests/{ended}", user=USER)
    site.wait_for(ended, "succeeded", user=USER)
    open_session(outputs.person, site)
    outputs.come_back("ended.ipynb", kind="notebooks")
    expect(outputs.of(0)).to_have_text(AWAY)
    expect(outputs.prompt(0)).to_have_text("[1]:")
