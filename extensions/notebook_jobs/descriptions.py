"""Requests and schedules of the service as jobs and job definitions of jupyter-scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from jupyter_scheduler.models import DescribeJob, DescribeJobDefinition, Status

from ...hub.schemas import RequestOut
from ...hub.schemas.schedules import SCHEDULE_LABEL, ScheduledJobOut, ScheduleOut
from .choices import ComputeType, JobEnvironment
from .job_labels import NotebookJobLabels
from .job_options import as_typed

_STATUSES: Final = {
    "starting": Status.IN_PROGRESS,
    "running": Status.IN_PROGRESS,
    "stopping": Status.STOPPING,
    "succeeded": Status.COMPLETED,
    "failed": Status.FAILED,
    "timed_out": Status.FAILED,
    "cancelled": Status.STOPPED,
}
"""By state of the request; all others are queued, or queued again."""


def environment_name(environments: Sequence[JobEnvironment], group: str, image: str) -> str:
    """Return the name by which the form offers a group and an image, or describe them.

    Args:
        image: as the service describes it, ``torch@sha256:…``; empty for the default one.
    """
    name = image.partition("@")[0]
    for each in environments:
        if each.group == group and name in {"", each.image}:
            return each.name
    return f"{name} ({group})" if name else group


def status(request: RequestOut) -> Status:
    return _STATUSES.get(request.state, Status.QUEUED)


def status_message(request: RequestOut) -> str | None:
    """Return the reason of the wait or of the end, in one sentence; None if there is none."""
    if request.ended:
        failed = request.cause is not None and request.state != "succeeded"
        return request.cause.message if failed and request.cause else None
    if request.warning is not None:
        return request.warning.message
    return request.wait.sentence if request.wait else None


def describe_job(request: RequestOut, job_id: str, environment: str) -> DescribeJob:
    """Return a request as a job, without its files.

    Args:
        job_id: the id that jupyter-scheduler uses for it.
        environment: the name of its environment.
    """
    labels = NotebookJobLabels.of(request.labels)
    changed_at = request.ended_at or request.started_at or request.submitted_at
    return DescribeJob(
        **_common(request, environment, request.notebook),
        job_id=job_id,
        url=f"/jobs/{job_id}",
        package_input_folder=labels.with_folder,
        job_definition_id=request.labels.get(SCHEDULE_LABEL),
        create_time=_milliseconds(request.submitted_at),
        update_time=_milliseconds(changed_at),
        start_time=_milliseconds(request.started_at),
        end_time=_milliseconds(request.ended_at),
        status=status(request),
        status_message=status_message(request),
    )


def describe_definition(
    schedule: ScheduleOut, job: ScheduledJobOut, environment: str
) -> DescribeJobDefinition:
    """Return a schedule as a job definition."""
    return DescribeJobDefinition(
        **_common(job, environment, job.notebook or schedule.what),
        job_definition_id=schedule.id,
        package_input_folder=job.uploaded,
        schedule=schedule.cron,
        timezone=schedule.zone,
        create_time=_milliseconds(schedule.created_at),
        update_time=_milliseconds(schedule.last_due or schedule.created_at),
        active=schedule.state == "active",
    )


def _common(
    job: RequestOut | ScheduledJobOut, environment: str, notebook: str
) -> dict[str, object]:
    labels, file = NotebookJobLabels.of(job.labels), PurePosixPath(notebook)
    return {
        "name": labels.name or file.stem,
        "input_filename": file.name,
        "runtime_environment_name": environment,
        "runtime_environment_parameters": {},
        "compute_type": str(ComputeType(devices=job.devices, model=job.model)),
        "output_formats": list(labels.formats),
        "parameters": as_typed(job),
        "tags": list(labels.tags),
    }


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
