"""The conversion of scripts into notebooks."""

from __future__ import annotations

import sys

import nbformat
import pytest
from nbformat import NotebookNode

from carrel.hub.admission import script
from carrel.hub.admission.notebook import check_notebook, check_parameters
from carrel.hub.admission.script import as_notebook
from carrel.hub.attempts.notebook_format import is_marimo
from carrel.hub.errors import InvalidInput, TooLarge
from carrel.hub.schemas import NotebookIn

PERCENT = """#!/usr/bin/env python
# ---
# jupyter:
#   kernelspec:
#     name: python3
#   jupytext:
#     text_representation:
#       format_name: {format}
# ---
import os
# %% [markdown]
# # Title
# %% tags=["parameters"]
lr = 0.1  # the rate
# %%
# %matplotlib inline
print(lr)
"""
MARIMO = "import marimo\n\napp = marimo.App()\n\n\n@app.cell\ndef _():\n    return\n"


def converted(source: str, name: str = "train.py") -> NotebookNode:
    made = as_notebook(NotebookIn(name=name, content=source))
    assert made.name == "train.ipynb"
    assert check_notebook(made.name, made.content).repairs == ()
    node: NotebookNode = nbformat.reads(made.content, as_version=4)
    return node


def cells(node: NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in node.cells]


@pytest.mark.parametrize("named", ["percent", "light", "marimo", "unknown", "{", "[]"])
def test_cells_of_a_script_are_those_of_the_notebook_whatever_format_its_header_names(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "marimo", None)
    node = converted(PERCENT.format(format=named))
    assert cells(node) == [
        ("code", "import os"),
        ("markdown", "# Title"),
        ("code", "lr = 0.1  # the rate"),
        ("code", "%matplotlib inline\nprint(lr)"),
    ]
    assert node.metadata.kernelspec.name == "python3"
    checked = check_notebook("train.ipynb", nbformat.writes(node))
    assert checked.fields is not None
    assert [(field.name, field.help) for field in checked.fields] == [("lr", "the rate")]


def test_the_kernel_is_that_of_the_header_or_python() -> None:
    other = PERCENT.format(format="percent").replace("name: python3", "name: torch")
    assert converted(other).metadata.kernelspec.name == "torch"
    assert converted("# %%\n1").metadata.kernelspec.name == "python3"
    # To read a long header takes seconds, and no program writes one.
    long = other.replace("# ---\n", "# ---\n" + "# x: 1\n" * 10_000, 1)
    assert converted(long).metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(
    "source",
    [
        "import sys\n\nif True:\n\n    print(1)\n\n# %d items\nprint(2)\n",
        "def f(:\n",
        "",
        "# ---\n# a: [\n# ---\nx = 1",
        "print('# %%')",
    ],
)
def test_a_script_without_cells_is_one_cell_as_it_is(source: str) -> None:
    assert cells(converted(source)) == [("code", source)]


def test_line_ends_and_byte_order_marks_of_other_systems_are_accepted() -> None:
    assert cells(converted("\ufeff# %%\r\nx = 1\r\n# %%\r\ny = 2\r\n")) == [
        ("code", "x = 1"),
        ("code", "y = 2"),
    ]


def test_a_second_header_is_only_text() -> None:
    second = "# ---\n# jupyter:\n#   jupytext:\n#     formats: py:marimo\n# ---\n"
    node = converted(f"# ---\n# a: b\n# ---\n{second}# %%\nx = 1\n")
    assert cells(node)[-1] == ("code", "x = 1")


def test_a_marimo_notebook_is_one_cell_that_marimo_runs_with_any_parameters() -> None:
    node = converted(MARIMO)
    assert cells(node) == [("code", MARIMO)]
    assert is_marimo(node)
    assert not is_marimo(converted(f"# %%\n{MARIMO[:14]}"))
    checked = check_notebook("train.ipynb", nbformat.writes(node))  # type: ignore[no-untyped-call]
    check_parameters("train.ipynb", checked, {"lr": 0.5})


@pytest.mark.parametrize(
    ("name", "source", "error", "said"),
    [
        ("a.py", "x = '\0'", InvalidInput, "a.py is not a text"),
        ("a.py", "x = '\ud800'", InvalidInput, "a.py is not a text"),
        ("a.py", "x" * (script.MAX_SCRIPT_BYTES + 1), TooLarge, r"a\.py has 1\.0 MiB"),
        ("a.py", "# %%\n" * 2001, TooLarge, r"a\.py has 2,001 cells"),
        ("a.R", "x <- 1", InvalidInput, "jupytext --to ipynb a.R"),
        ("a.jl", "x = 1", InvalidInput, "jupytext --to ipynb a.jl"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_what_is_accepted(
    name: str, source: str, error: type[InvalidInput], said: str
) -> None:
    with pytest.raises(error, match=said) as refused:
        as_notebook(NotebookIn.model_construct(name=name, content=source))
    assert refused.value.accepted
    assert refused.value.field == "notebook"


def test_a_notebook_stays_as_it_is() -> None:
    notebook = NotebookIn(name="train.ipynb", content="{")
    assert as_notebook(notebook) is notebook
