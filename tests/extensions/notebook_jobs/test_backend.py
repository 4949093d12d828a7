"""The classes that jupyter-scheduler loads: 2.12 by its configuration, 3.0 by entry point.

3.0 is not released. What it does with an entry point is done here as in its pull request 596: load
the class, read its attributes, import the classes that it names, and create the scheduler.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from traitlets.config import Config

from carrel.extensions.notebook_jobs import backend, configure

from ... import notebook_jobs


class BaseBackend:
    """The base class of the attributes that 3.0 reads."""

    id: str
    name: str
    description = ""
    scheduler_class: str
    execution_manager_class: str
    database_manager_class: str | None = None
    file_extensions: list[str] = []  # noqa: RUF012  # as it is there
    output_formats: list[dict[str, str]] = []  # noqa: RUF012  # the same


@pytest.fixture
def jupyter_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(notebook_jobs.packages())


def imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_the_entry_point_works_without_jupyter_scheduler() -> None:
    (point,) = entry_points(group="jupyter_scheduler.backends")
    assert point.name == "carrel"
    found = point.load()
    assert (found.id, found.file_extensions) == ("carrel", ["ipynb", "py"])
    assert found.output_formats == [
        {"id": "ipynb", "label": "Notebook"},
        {"id": "html", "label": "HTML"},
    ]


def test_the_backend_of_3_0_names_classes_that_exist_and_are_created_as_it_does(
    jupyter_scheduler: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base = ModuleType("jupyter_scheduler.base_backend")
    base.BaseBackend = BaseBackend  # type: ignore[attr-defined]  # what 3.0 has in this module
    monkeypatch.setitem(sys.modules, base.__name__, base)
    found = importlib.reload(backend).CarrelBackend
    try:
        assert issubclass(found, BaseBackend)
    finally:
        monkeypatch.undo()
        importlib.reload(backend)
    monkeypatch.syspath_prepend(notebook_jobs.packages())
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    scheduler = imported(found.scheduler_class)(
        root_dir=str(tmp_path),
        environments_manager=imported(
            "carrel.extensions.notebook_jobs.environments.PoolEnvironments"
        )(),
        db_url="sqlite://",
        config=Config(),
        backend_id=found.id,
    )
    scheduler.execution_manager_class = imported(found.execution_manager_class)
    assert scheduler.backend_id == "carrel"
    assert scheduler.task_runner is None
    features = scheduler.execution_manager_class.supported_features(found)
    assert features["parameters"]
    assert not features["email_notifications"]


def test_the_configuration_names_the_classes_of_2_12(jupyter_scheduler: None) -> None:
    c = Config()
    configure(c)
    from jupyter_scheduler.scheduler import BaseScheduler  # noqa: PLC0415  # only on this path

    assert issubclass(imported(c.SchedulerApp.scheduler_class), BaseScheduler)
    for name in ("environment_manager_class", "job_files_manager_class"):
        assert imported(c.SchedulerApp[name]).__module__.startswith("carrel.extensions")
