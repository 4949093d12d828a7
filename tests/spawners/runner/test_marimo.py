"""marimo notebooks as jobs. The stub writes what marimo 0.25 exports.

With ``CARREL_MARIMO_PYTHON``, an interpreter of an environment with marimo, the real one runs.
"""

from __future__ import annotations

import json
import os
import sys

import pytest
from nbformat import NotebookNode

from carrel.hub.admission.script import as_notebook
from carrel.hub.attempts.spec import LOG
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.schemas import NotebookIn

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import printed, read, statuses

REAL = os.environ.get("CARREL_MARIMO_PYTHON", "")
SOURCE = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    lr = float(mo.cli_args().get("lr") or 0.1)
    print("lr", lr)
    return lr, mo


@app.cell
def _(lr):
    print(1 / (lr - 0.5))
    return


@app.cell
def _(mo):
    mo.md("# Title")
    return


@app.cell
def _():
    print("other")
    return
"""
STUB = """\
import json, os, sys
assert sys.argv[1:3] == ["export", "ipynb"], sys.argv
assert "import marimo" in open(sys.argv[3]).read()
result = sys.argv[sys.argv.index("--output") + 1]
options = sys.argv[sys.argv.index("--") + 1 :]
lr = float(options[options.index("--lr") + 1]) if "--lr" in options else 0.1
print("marimo says something")
if lr < 0:
    sys.exit("marimo crashes")
def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": [text]}
def code(source, *outputs):
    return {"cell_type": "code", "execution_count": None, "id": source[:4], "metadata": {},
            "source": [source], "outputs": list(outputs)}
error = {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "float division by zero",
         "traceback": ["Traceback", "ZeroDivisionError: float division by zero"]}
cells = [
    code("first = 1", stream(f"lr {lr}\\n")),
    code("print", error if lr == 0.5 else stream(f"{1 / (lr - 0.5)}\\n")),
    {"cell_type": "markdown", "id": "text", "metadata": {"marimo": {}}, "source": ["# Title"]},
    code("other", stream("other\\n")),
]
book = {"cells": cells, "metadata": {"marimo": {"marimo_version": "0.25.2"}},
        "nbformat": 4, "nbformat_minor": 5}
with open(result, "w") as file:
    json.dump(book, file)
sys.exit("Error: Export was successful, but some cells failed to execute." if lr == 0.5 else 0)
"""


def run(
    desk: Desk, *, source: str = SOURCE, kernel: str = "with-marimo", **parameters: float
) -> LaunchOrder:
    sent = as_notebook(NotebookIn(name="train.py", content=source))
    order = desk.order(sent.content, kernel=kernel, parameters=parameters)
    wait_for_end(desk, order, desk.backend.start(order))
    return order


def output(order: LaunchOrder) -> NotebookNode:
    return read(order.folder / "output.ipynb")


@pytest.fixture(autouse=True)
def environment(desk: Desk) -> None:
    """A kernel of an environment that has marimo."""
    spec = desk.folder / "home" / ".local" / "share" / "jupyter" / "kernels" / "with-marimo"
    spec.mkdir(parents=True)
    package = desk.folder / "site" / "marimo"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STUB)
    argv = [REAL or sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    found = {"argv": argv, "display_name": "With marimo", "language": "python"}
    if not REAL:
        found["env"] = {"PYTHONPATH": str(package.parent)}
    (spec / "kernel.json").write_text(json.dumps(found))


def test_marimo_runs_its_notebook_with_the_parameters_and_its_export_is_the_output(
    desk: Desk,
) -> None:
    order = run(desk, lr=0.75)
    assert desk.service.ended["message"] == "Ran 3 cells without an error."
    executed = output(order)
    assert printed(executed) == "lr 0.75\n4.0\nother\n"
    assert [cell.cell_type for cell in executed.cells] == ["code", "code", "markdown", "code"]
    assert statuses(executed) == ["completed"] * 3
    assert (executed.metadata.carrel.outcome, executed.metadata.carrel.done) == ("succeeded", 3)
    assert "lr 0.75\n4.0\nother\n" in (order.folder / LOG).read_text()
    assert desk.service.kinds() == [
        "cells",
        *("cell_started", "cell_output", "cell_finished") * 3,
        "ended",
    ]


def test_a_cell_that_fails_is_named_and_those_that_do_not_need_it_are_complete(desk: Desk) -> None:
    order = run(desk, lr=0.5)
    ended = desk.service.ended
    assert ended["code"] == "cell_error"
    assert ended["message"].startswith("error in cell 2: ZeroDivisionError: ")
    assert statuses(output(order)) == ["completed", "failed", "completed"]


def test_an_environment_without_marimo_is_named_with_what_to_install(desk: Desk) -> None:
    run(desk, kernel="python3")
    assert desk.service.ended["code"] == "invalid_job"
    assert (
        "train.ipynb is a marimo notebook, but the environment of the kernel"
        in (desk.service.ended["message"])
    )
    assert "has no marimo: install it there (pip install marimo)" in desk.service.ended["message"]


def test_a_marimo_that_fails_without_a_notebook_fails_the_job_with_its_last_lines(
    desk: Desk,
) -> None:
    if REAL:
        run(desk, source=SOURCE + "\ndef f(:\n")
    else:
        run(desk, lr=-1)
    assert desk.service.ended["code"] == "command_failed"
    assert desk.service.ended["message"].startswith("`marimo export` exited with status 1")
    assert ("invalid syntax" if REAL else "marimo crashes") in desk.service.ended["details"]
