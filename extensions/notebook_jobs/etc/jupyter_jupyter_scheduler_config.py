"""jupyter-scheduler's configuration in sessions: jobs and schedules are those of the service."""

from carrel.extensions.notebook_jobs import configure

configure(get_config())  # type: ignore[name-defined]  # noqa: F821  # Jupyter puts it here
