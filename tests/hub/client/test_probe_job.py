"""The job that probes a notebook."""

from __future__ import annotations

import json

import pytest

from carrel.hub.client.probe_job import probe_job
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import JobIn

CELL = {"cell_type": "code", "source": 'print(\'"""\')', "metadata": {"tags": ["parameters"]}}


def job(**fields: object) -> JobIn:
    notebook = {"name": "train.ipynb", "content": json.dumps({"cells": [CELL], "metadata": {}})}
    return JobIn.model_validate(
        {"group": "cs101", "idempotency_key": "a", "notebook": notebook} | fields
    )


def test_the_source_and_the_parameters_are_values_of_its_cells() -> None:
    made = probe_job(job(parameters={"lr": 0.1, "name": "it's"}))
    assert made.notebook is not None
    cells = json.loads(made.notebook.content)["cells"]
    found: dict[str, str] = {}
    exec(cells[1]["source"], found)  # noqa: S102  # of this test
    assert json.loads(found["source"])["cells"] == [CELL]
    assert '"it\'s"' in cells[2]["source"]


@pytest.mark.parametrize(
    "fields",
    [
        {"notebook": None, "command": ["true"]},
        {"notebook": {"name": "a.ipynb", "content": "{}"}},
        {"notebook": {"name": "a.ipynb", "content": "no"}},
        {"results": {"lr": "j-1.best.lr"}, "after": ["j-1"]},
    ],
    ids=["a command", "no cells", "no JSON", "results"],
)
def test_what_cannot_be_probed_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        probe_job(job(**fields))
