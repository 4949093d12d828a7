"""JupyterLab's Notebook Jobs (jupyter-scheduler) over Carrel: jobs and schedules of the service.

jupyter-scheduler is installed in the environment of sessions. Its server extension reads the
configuration in ``etc``, which names the classes of this package; without jupyter-scheduler nothing
reads it. All calls go to the service with the token of the session.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

_HERE = "carrel.extensions.notebook_jobs"


def configure(c: Any) -> None:  # traitlets' configuration: any name is an attribute
    """Make jupyter-scheduler use Carrel; ``c`` is what ``get_config()`` returns."""
    app = c.SchedulerApp
    app.environment_manager_class = f"{_HERE}.environments.PoolEnvironments"
    app.db_url = "sqlite://"  # in memory, and never used
    if find_spec("jupyter_scheduler.base_backend"):
        # From 3.0 on, the scheduler is that of the backend, which an entry point names.
        app.preferred_backends = {"ipynb": "carrel"}
        return
    app.scheduler_class = f"{_HERE}.scheduler.ServiceScheduler"
    app.job_files_manager_class = f"{_HERE}.job_files.OutputFilesManager"
