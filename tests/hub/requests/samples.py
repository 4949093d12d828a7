"""Bodies of requests for tests."""

from __future__ import annotations

from typing import Any

from carrel.hub.records.requests import RequestFilter
from carrel.hub.runtime.context import Context
from carrel.hub.schemas import JobIn, NotebookIn

from ..notebooks import notebook


def job(**changes: Any) -> JobIn:
    values: dict[str, Any] = {
        "group": "cs101",
        "devices": 1,
        "seconds": 600,
        "notebook": NotebookIn(name="train.ipynb", content=notebook("print(lr)")),
        "parameters": {"lr": 0.05},
    }
    return JobIn.model_construct(**{**JobIn(**values).__dict__, **changes})


def named(name: str, content: str | None = None) -> NotebookIn:
    return NotebookIn(name=name, content=notebook("1") if content is None else content)


def stored(context: Context) -> int:
    return len(context.store.requests(RequestFilter()))


def command(**changes: Any) -> JobIn:
    values = {"group": "cs101", "seconds": 600, "command": ["python", "train.py"]}
    return JobIn(**{**values, **changes})
