"""The job that probes a notebook."""

from __future__ import annotations

import json

import pytest

from carrel.hub.client.probe_job import probe_job, probed_job, probed_notebook
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import JobIn

CELL = {"cell_type": "code", "source": 'print(\'"""\')', "metadata": {"tags": ["parameters"]}}
PROBED = CELL | {"outputs": [], "execution_count": None}


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
    assert json.loads(found["source"])["cells"] == [PROBED]
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


def test_the_probed_job_is_read_from_its_probe() -> None:
    given = job(
        parameters={"lr": 0.1, "name": "it's"}, seconds=7200, retries=2, output="out.ipynb",
        labels={"kind": "baseline"}, devices=2, memory_bytes=1 << 30,
    )  # fmt: skip  # grouped
    probe = probe_job(given)
    assert probe.notebook is not None
    assert probed_notebook(probe.labels, probe.notebook.name) == "train.ipynb"
    found = probed_job(probe)
    assert found.notebook is not None
    assert json.loads(found.notebook.content) == {"cells": [PROBED], "metadata": {}}
    assert found.model_copy(update={"notebook": None}) == given.model_copy(
        update={"notebook": None}
    )


@pytest.mark.parametrize(
    "change",
    [
        {"notebook": None, "command": ["true"]},
        {"labels": {}},
        {"notebook": {"name": "advice-train.ipynb", "content": "{}"}},
        {"notebook": {"name": "advice-train.ipynb", "content": '{"cells": [{"id": "source"}]}'}},
    ],
)
def test_a_changed_probe_is_refused(change: dict[str, object]) -> None:
    changed = JobIn.model_validate(probe_job(job()).model_dump() | change)
    with pytest.raises(InvalidInput, match="cannot be read from its probe"):
        probed_job(changed)
