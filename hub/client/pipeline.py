"""Submit the jobs of a pipeline: all of them, or none."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import CarrelError, InvalidInput
from ..records.dependencies import PIPELINE, PIPELINE_NAME
from ..schemas import RequestOut
from . import job_builder
from .pipeline_file import PipelineJob
from .sync_client import Client


def submit_pipeline(
    client: Client, jobs: Sequence[PipelineJob], *, group: str, home: Path | None
) -> Mapping[str, RequestOut]:
    """Submit jobs, each after those that it waits for; return the requests by name.

    Args:
        group: the group to charge.
        home: home folder of the session in which this runs; None outside of a session.

    Raises:
        CarrelError: a job was refused. Those before it are cancelled.
    """
    label = secrets.token_hex(4)
    bodies = {job.name: job_fields(job, group, label, home) for job in jobs}
    made: dict[str, RequestOut] = {}
    for job in jobs:
        others = job.references({name: request.id for name, request in made.items()})
        try:
            body = job_builder.job(bodies[job.name] | others, maker="pipeline")
            made[job.name] = client.submit(body)
        except CarrelError as error:
            error.message = f"{job.name}: {error.message}{_cancelled(client, made)}"
            raise
    return made


def job_fields(job: PipelineJob, group: str, label: str, home: Path | None) -> dict[str, object]:
    """Return the fields of the body without its dependencies; packs its files."""
    place = job_builder.working_folder(
        job.folder,
        home=home,
        upload=job.upload,
        inputs=job.inputs,
        workdir=job.workdir,
        needed=job.needs_files,
    )
    labels = job.fields.get("labels", {})
    if not isinstance(labels, dict):
        raise InvalidInput(
            f"{job.name}: labels cannot be {labels!r:.80}.", accepted='labels = { stage = "first" }'
        )
    own = {"group": group, "labels": labels | {PIPELINE: label, PIPELINE_NAME: job.name}}
    return {**job.fields, **own, **place.fields}


def _cancelled(client: Client, made: Mapping[str, RequestOut]) -> str:
    """Cancel what was submitted, the last one first; return what to say of it."""
    if not made:
        return ""
    for request in reversed(list(made.values())):
        client.cancel(request.id, "A later job of its pipeline was refused.")
    names = ", ".join(made)
    return f" The jobs submitted before it are cancelled: {names}."
