"""The job that probes a notebook: an ordinary notebook job whose notebook runs another one.

It keeps the job that it was made from, which can be submitted with what the probe has found.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Final

from ..errors import InvalidInput
from ..schemas import JobIn, NotebookIn

LONGEST_PROBE: Final = 120
"""Seconds of a probe at most, unless the user asks for more."""
_SHORTEST: Final = 30
_START: Final = 15
"""Seconds of the job that are left for the start of its kernel and of the first process."""
_SHARE: Final = 0.05
ADVICE_FILE: Final = "advice.json"
"""Name of the job's file with the advice."""
LABEL: Final = "advice"
"""The label of a probe job; its value is the name of the notebook."""
_PREFIX: Final = "advice-"
_KEPT: Final = "carrel_advice"
"""Key of the metadata of its notebook with the fields of the job that it was made from."""
_KEPT_FIELDS: Final = ("parameters", "output", "seconds", "retries", "kernel")
_SOURCE: Final = "source = "


def probe_job(
    job: JobIn,
    *,
    batch_parameter: str = "",
    budget: int | None = None,
    run_seconds: float | None = None,
    deadline_seconds: float = 0,
    largest_batch: int | None = None,
) -> JobIn:
    """Return the job that probes the notebook of a job, on the same devices.

    Args:
        batch_parameter: the parameter of the notebook that is the batch; by default by its name.
        budget: seconds of the probe; by default 120, and at most 5 % of ``run_seconds``.
        run_seconds: the predicted run time; None if unknown.
        deadline_seconds: in which time the run should end; 0 for none.
        largest_batch: no larger one is tried, such as the size of the data.

    Raises:
        InvalidInput: the job is not that of one notebook.
    """
    notebook = job.notebook
    if notebook is None or job.sweep is not None:
        raise InvalidInput(
            "Advice is for a job with a notebook, not for a command or a sweep.",
            accepted="In Python code: carrel.advise(step, make_batch).",
            field="kind",
        )
    if job.results:
        raise InvalidInput(
            "A probe cannot wait for values of other jobs.",
            accepted="Give these parameters values.",
            field="results",
        )
    seconds = budget
    if seconds is None:
        share = LONGEST_PROBE if run_seconds is None else round(_SHARE * run_seconds)
        seconds = min(LONGEST_PROBE, max(_SHORTEST, share))
    call: dict[str, object] = {
        "batch_parameter": batch_parameter,
        "budget": max(seconds - _START, seconds / 2),
        "whole_budget": budget is not None,
        "deadline": deadline_seconds,
        "memory": job.memory_bytes,
    }
    if largest_batch is not None:
        call["largest"] = largest_batch
    return job.model_copy(
        update={
            "notebook": NotebookIn(
                name=f"{_PREFIX}{notebook.name.removesuffix('.py').removesuffix('.ipynb')}.ipynb",
                content=_notebook(job, notebook, call),
            ),
            "parameters": {},
            "output": "",
            "seconds": seconds,
            "retries": 0,
            "deadline": None,
            "labels": {**job.labels, LABEL: notebook.name},
        }
    )


def probed_notebook(labels: Mapping[str, str], notebook: str) -> str:
    """Return the name of the notebook that a job with these labels probes; empty for other jobs."""
    return labels.get(LABEL, "") if notebook.startswith(_PREFIX) else ""


def probed_job(probe: JobIn) -> JobIn:
    """Return the job that a probe job was made from, without outputs and without its deadline.

    Raises:
        InvalidInput: it is no probe job, or was changed.
    """
    try:
        assert probe.notebook is not None
        document = json.loads(probe.notebook.content)
        cell = next(each for each in document["cells"] if each.get("id") == "source")
        content = ast.literal_eval("".join(cell["source"]).removeprefix(_SOURCE))
        kept = document["metadata"][_KEPT]
        return JobIn.model_validate(
            {
                **probe.model_dump(),
                **{name: kept[name] for name in _KEPT_FIELDS},
                "notebook": {"name": probe.labels[LABEL], "content": content},
                "labels": {name: text for name, text in probe.labels.items() if name != LABEL},
            }
        )
    except (AssertionError, ValueError, LookupError, TypeError, AttributeError, StopIteration,
            SyntaxError) as error:  # fmt: skip  # of a changed notebook
        raise InvalidInput(
            "The job that was probed cannot be read from its probe.",
            accepted="A job that was submitted for advice, with its notebook unchanged.",
        ) from error


def _notebook(job: JobIn, notebook: NotebookIn, call: dict[str, object]) -> str:
    """Return the text of the notebook that runs the probe."""
    try:
        document = json.loads(notebook.content)
        cells = [_without_outputs(cell) for cell in document["cells"]]
        metadata = document.get("metadata", {})
        source = json.dumps({**document, "cells": cells})
        kernel = metadata.get("kernelspec")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{notebook.name} cannot be read as a notebook for a probe: {error}.",
            accepted="A Jupyter notebook (.ipynb) of format 4.",
            field="notebook",
        ) from error
    arguments = "".join(f"    {name}={value!r},\n" for name, value in call.items())
    code = (
        "from carrel.extensions.advice.notebook_probe import probe_notebook\n\n"
        f"advice = probe_notebook(\n    source,\n    {job.parameters!r},\n{arguments})\n"
        "print(advice)"
    )
    told = (
        f"# Advice on {notebook.name}\n\nThis job runs {notebook.name} for a short time with "
        "several settings, in processes of their own, and advises on them below."
    )
    kept = job.model_dump(mode="json")
    return json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "id": "about", "metadata": {}, "source": told},
                _code("source", f"{_SOURCE}{source!r}"),
                _code("probe", code),
            ],
            "metadata": {
                "kernelspec": kernel
                or {"name": "python3", "display_name": "Python 3", "language": "python"},
                _KEPT: {name: kept[name] for name in _KEPT_FIELDS},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def _without_outputs(cell: Mapping[str, object]) -> dict[str, object]:
    kind, source = cell["cell_type"], cell["source"]
    empty: dict[str, object] = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {**cell, "cell_type": kind, "source": source, **empty}


def _code(name: str, source: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"jupyter": {"source_hidden": name == "source"}},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }
