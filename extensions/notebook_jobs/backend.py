"""Carrel as one of the backends that jupyter-scheduler 3.0 finds by entry point.

Imported without jupyter-scheduler too: it has no ``base_backend`` before 3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .choices import FILE_EXTENSIONS, OUTPUT_FORMATS

if TYPE_CHECKING:
    from jupyter_scheduler.base_backend import BaseBackend
else:
    try:
        from jupyter_scheduler.base_backend import BaseBackend
    except ImportError:
        BaseBackend = object

_PACKAGE = __package__


class CarrelBackend(BaseBackend):  # type: ignore[misc]  # jupyter-scheduler has no types
    """What ``GET /scheduler/backends`` of 3.0 says of Carrel, and the classes that it loads."""

    id: ClassVar[str] = "carrel"
    name: ClassVar[str] = "Carrel"
    description: ClassVar[str] = "Run on the GPU pool, also while your session is stopped"
    scheduler_class: ClassVar[str] = f"{_PACKAGE}.scheduler.ServiceScheduler"
    execution_manager_class: ClassVar[str] = f"{_PACKAGE}.execution.ServiceExecutionManager"
    database_manager_class: ClassVar[str] = scheduler_class
    """The service keeps the jobs; with a class here 3.0 creates no tables."""
    file_extensions: ClassVar[list[str]] = list(FILE_EXTENSIONS)
    output_formats: ClassVar[list[dict[str, str]]] = [
        {"id": each, "label": label} for each, label in OUTPUT_FORMATS.items()
    ]
