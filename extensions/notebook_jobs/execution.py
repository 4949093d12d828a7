"""What jupyter-scheduler asks of an execution manager, although the service executes the jobs."""

from __future__ import annotations

from jupyter_scheduler.executors import ExecutionManager
from jupyter_scheduler.models import JobFeature

_SUPPORTED = frozenset(
    {
        JobFeature.job_name,
        JobFeature.parameters,
        JobFeature.output_formats,
        JobFeature.job_definition,
        JobFeature.idempotency_token,
        JobFeature.tags,
        JobFeature.stop_job,
        JobFeature.delete_job,
    }
)


class ServiceExecutionManager(ExecutionManager):  # type: ignore[misc]  # untyped base
    """Says which features the form may offer; nothing is executed beside the session."""

    def supported_features(cls) -> dict[JobFeature, bool]:  # called with the class
        return {feature: feature in _SUPPORTED for feature in JobFeature}

    def execute(self) -> None:
        raise NotImplementedError("The Carrel service executes the jobs.")
