"""Carrel: notebook sessions and batch notebook jobs on one shared GPU pool."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .extensions import execution as execution
    from .extensions.advice.advise import advise as advise
    from .extensions.job import Job as Job
    from .extensions.job import diff as diff
    from .extensions.job import jobs as jobs
    from .extensions.job import pipeline as pipeline
    from .extensions.job import run as run
    from .extensions.job import submit as submit
    from .extensions.magics.magics import load_ipython_extension as load_ipython_extension
    from .extensions.runtime.checkpoint import checkpoint as checkpoint
    from .extensions.runtime.checkpoint import notice as notice
    from .extensions.runtime.checkpoint import resume_path as resume_path
    from .extensions.runtime.checkpoint import saved as saved
    from .extensions.runtime.progress import progress as progress
    from .extensions.runtime.receipt import receipt as receipt
    from .extensions.runtime.report import report as report
    from .extensions.spark.session import spark as spark
    from .extensions.spark.sklearn_stages import spark_estimator as spark_estimator
    from .extensions.spark.sklearn_stages import spark_model as spark_model
    from .extensions.spark.torch_scores import spark_scores as spark_scores
    from .extensions.stages.stages import stages as stages
    from .extensions.stages.step_schedule import schedules as schedules
    from .extensions.sweep import explain_sweep as explain_sweep
    from .extensions.sweep import sweep as sweep
    from .extensions.widgets import JobView as JobView
    from .extensions.widgets import PoolView as PoolView
    from .extensions.widgets import QueueView as QueueView
    from .extensions.widgets import SubmitForm as SubmitForm
    from .extensions.widgets import SweepView as SweepView

__version__ = "0.1.0"

_MODULES: Final = {
    "Job": "extensions.job",
    "advise": "extensions.advice.advise",
    "diff": "extensions.job",
    "execution": "extensions.execution",
    "jobs": "extensions.job",
    "load_ipython_extension": "extensions.magics.magics",
    "run": "extensions.job",
    "pipeline": "extensions.job",
    "submit": "extensions.job",
    "schedules": "extensions.stages.step_schedule",
    "spark": "extensions.spark.session",
    "spark_estimator": "extensions.spark.sklearn_stages",
    "spark_model": "extensions.spark.sklearn_stages",
    "spark_scores": "extensions.spark.torch_scores",
    "stages": "extensions.stages.stages",
    "explain_sweep": "extensions.sweep",
    "sweep": "extensions.sweep",
    "progress": "extensions.runtime.progress",
    "receipt": "extensions.runtime.receipt",
    "report": "extensions.runtime.report",
    "checkpoint": "extensions.runtime.checkpoint",
    "notice": "extensions.runtime.checkpoint",
    "resume_path": "extensions.runtime.checkpoint",
    "saved": "extensions.runtime.checkpoint",
    "JobView": "extensions.widgets",
    "PoolView": "extensions.widgets",
    "QueueView": "extensions.widgets",
    "SubmitForm": "extensions.widgets",
    "SweepView": "extensions.widgets",
}
"""Names that notebooks use → where they are made. Each is imported when it is first used, so
that ``import carrel`` stays fast and needs nothing."""
_PACKAGES: Final = frozenset({"extensions.execution"})
"""Modules that are the value of their name themselves."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULES[name]}", __name__)
    value = module if _MODULES[name] in _PACKAGES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
