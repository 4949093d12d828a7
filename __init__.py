"""Carrel: notebook sessions and batch notebook jobs on one shared GPU pool."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .extensions.jobs import Job as Job
    from .extensions.jobs import jobs as jobs
    from .extensions.jobs import run as run
    from .extensions.jobs import submit as submit
    from .extensions.magics import load_ipython_extension as load_ipython_extension
    from .extensions.progress import progress as progress
    from .extensions.receipt import receipt as receipt
    from .extensions.saving import notice as notice
    from .extensions.saving import saved as saved
    from .extensions.widgets import JobView as JobView
    from .extensions.widgets import PoolView as PoolView
    from .extensions.widgets import QueueView as QueueView
    from .extensions.widgets import SubmitForm as SubmitForm

__version__ = "0.1.0"

_MODULES: Final = {
    "Job": "extensions.jobs",
    "jobs": "extensions.jobs",
    "load_ipython_extension": "extensions.magics",
    "run": "extensions.jobs",
    "submit": "extensions.jobs",
    "progress": "extensions.progress",
    "receipt": "extensions.receipt",
    "notice": "extensions.saving",
    "saved": "extensions.saving",
    "JobView": "extensions.widgets",
    "PoolView": "extensions.widgets",
    "QueueView": "extensions.widgets",
    "SubmitForm": "extensions.widgets",
}
"""Names that notebooks use → where they are made. Each is imported when it is first used, so
that ``import carrel`` stays fast and needs nothing."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
