"""Code cells and parameters, beside what papermill and the admission of jobs find."""

from __future__ import annotations

import json

import nbformat
import pytest

from carrel.hub.admission.notebook import check_notebook
from carrel.hub.errors import InvalidInput
from carrel.hub.sweeps.notebook_cells import declared_parameters, read_sweep_notebook

from .notebooks import notebook, notebook_text


@pytest.mark.parametrize(
    "source",
    [
        "lr = 0.1",
        "lr = 0.1  # learning rate\ndepth: int = 2\nname: 'str' = \"adam\"",
        "flag = True\nnone = None\nlayers = [1,\n          2]",
        "# a comment\n\nx = 1\ny = x * 2",
        "a = b = 1",
        "a, b = 1, 2\nc = 3",
        "x: float = 1\nx = 2",
        "",
        "print(1)",
    ],
)
def test_parameters_are_those_that_papermill_finds(source: str) -> None:
    checked = check_notebook("a.ipynb", notebook_text(parameters=source))
    assert checked.fields is not None
    papermills = {field.name: (field.type, field.shown) for field in checked.fields}
    found = {each.name: (each.field.type, each.field.shown) for each in declared_parameters(source)}
    # papermill does not read a line with two assignments.
    assert {name: found[name] for name in papermills} == papermills
    assert set(found) - set(papermills) <= {"a"}


def test_values_are_assigned_after_the_parameters_cell() -> None:
    assert notebook("x = 1", "y = 2", at=1).injection == 2
    assert notebook("x = 1", parameters=None).injection == 0
    assert notebook("x = 1", parameters=None).parameters == {}


def test_an_injected_cell_is_replaced_where_it_is() -> None:
    document = json.loads(notebook_text("a = 1", "b = 2", "c = 3"))
    document["cells"][2]["metadata"]["tags"] = ["injected-parameters"]
    found = read_sweep_notebook("a.ipynb", json.dumps(document))
    assert [(cell.number, cell.source) for cell in found.cells[1:]] == [(2, "a = 1"), (3, "c = 3")]
    assert found.injection == 2


def test_markdown_is_no_cell_and_sources_may_be_lists() -> None:
    made = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    made.cells = [
        nbformat.v4.new_markdown_cell("# Title"),  # type: ignore[no-untyped-call]
        nbformat.v4.new_code_cell("a = 1\nb = 2"),  # type: ignore[no-untyped-call]
    ]
    text = nbformat.writes(made)  # type: ignore[no-untyped-call]
    assert isinstance(json.loads(text)["cells"][1]["source"], str | list)
    assert [cell.source for cell in read_sweep_notebook("a.ipynb", text).cells] == ["a = 1\nb = 2"]


def test_times_of_an_earlier_run_are_read() -> None:
    document = json.loads(notebook_text("a = 1", "b = 2", "c = 3"))
    document["cells"][0]["metadata"]["papermill"] = {"duration": 1.5}
    document["cells"][1]["metadata"]["execution"] = {
        "iopub.execute_input": "2026-11-27T10:00:00.500Z",
        "shell.execute_reply": "2026-11-27T10:00:03.000Z",
    }
    document["cells"][2]["metadata"]["papermill"] = {"duration": "long"}
    cells = read_sweep_notebook("a.ipynb", json.dumps(document)).cells
    assert [cell.seconds for cell in cells] == [1.5, 2.5, None, None]


@pytest.mark.parametrize(
    ("metadata", "python"),
    [
        ({}, True),
        ({"language_info": {"name": "python"}}, True),
        ({"kernelspec": {"name": "ir", "language": "R"}}, False),
        ({"language_info": {"name": "julia"}}, False),
        ({"language_info": 3, "kernelspec": []}, True),
    ],
)
def test_the_language_is_that_of_the_metadata(metadata: object, python: bool) -> None:
    document = json.loads(notebook_text("a = 1")) | {"metadata": metadata}
    assert read_sweep_notebook("a.ipynb", json.dumps(document)).python is python


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', "[" * 200 + "]" * 200])
def test_what_is_no_notebook_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"a\.ipynb cannot be read as a notebook"):
        read_sweep_notebook("a.ipynb", text)


def test_odd_cells_are_read_as_far_as_they_go() -> None:
    cells = [
        None,
        {},
        {"cell_type": "code"},
        {"cell_type": "code", "source": [1, "x = 1"], "metadata": 5},
    ]
    found = read_sweep_notebook("a.ipynb", json.dumps({"cells": cells}))
    assert [cell.source for cell in found.cells] == ["", "x = 1"]
