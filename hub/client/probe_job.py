"""The job that probes a notebook: an ordinary notebook job whose notebook runs another one."""

from __future__ import annotations

import json
from typing import Final

from ..errors import InvalidInput
from ..schemas import JobIn, NotebookIn

LONGEST_PROBE: Final = 120
"""Seconds of a probe at most, unless the user asks for more."""
_SHORTEST: Final = 20
_START: Final = 15
"""Seconds of the job that are left for the start of its kernel and of the first process."""
_SHARE: Final = 0.05
ADVICE_FILE: Final = "advice.json"
"""Name of the job's file with the advice."""
LABEL: Final = "advice"
"""The label of a probe job; its value is the name of the notebook."""


def probe_job(
    job: JobIn,
    *,
    batch_parameter: str = "",
    budget: int | None = None,
    run_seconds: float | None = None,
    deadline_seconds: float = 0,
) -> JobIn:
    """Return the job that probes the notebook of a job, on the same devices.

    Args:
        batch_parameter: the parameter of the notebook that is the batch; by default by its name.
        budget: seconds of the probe; by default 120, and at most 5 % of ``run_seconds``.
        run_seconds: the predicted run time; None if unknown.
        deadline_seconds: in which time the run should end; 0 for none.

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
    call = {
        "batch_parameter": batch_parameter,
        "budget": max(seconds - _START, seconds / 2),
        "whole_budget": budget is not None,
        "deadline": deadline_seconds,
        "memory": job.memory_bytes,
    }
    return job.model_copy(
        update={
            "notebook": NotebookIn(
                name=f"advice-{notebook.name.removesuffix('.py').removesuffix('.ipynb')}.ipynb",
                content=_notebook(notebook, job.parameters, call),
            ),
            "parameters": {},
            "output": "",
            "seconds": seconds,
            "retries": 0,
            "deadline": None,
            "labels": {**job.labels, LABEL: notebook.name},
        }
    )


def _notebook(notebook: NotebookIn, parameters: object, call: dict[str, object]) -> str:
    """Return the text of the notebook that runs the probe."""
    try:
        document = json.loads(notebook.content)
        cells = [
            {
                "cell_type": cell["cell_type"],
                "source": cell["source"],
                "metadata": {"tags": cell.get("metadata", {}).get("tags", [])},
            }
            for cell in document["cells"]
        ]
        metadata = document.get("metadata", {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{notebook.name} cannot be read as a notebook for a probe: {error}.",
            accepted="A Jupyter notebook (.ipynb) of format 4.",
            field="notebook",
        ) from error
    source = json.dumps({"cells": cells, "metadata": metadata})
    arguments = "".join(f"    {name}={value!r},\n" for name, value in call.items())
    code = (
        "from carrel.extensions.advice.notebook_probe import probe_notebook\n\n"
        f"advice = probe_notebook(\n    source,\n    {parameters!r},\n{arguments})\nprint(advice)"
    )
    told = (
        f"# Advice on {notebook.name}\n\nThis job runs {notebook.name} for a short time with "
        "several settings, in processes of their own, and advises on them below."
    )
    return json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "id": "about", "metadata": {}, "source": told},
                _code("source", f"source = {source!r}"),
                _code("probe", code),
            ],
            "metadata": {
                "kernelspec": metadata.get("kernelspec")
                or {"name": "python3", "display_name": "Python 3", "language": "python"}
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def _code(name: str, source: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"jupyter": {"source_hidden": name == "source"}},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }
