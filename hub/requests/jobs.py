"""The same job once more: its settings and files, as they would be submitted again."""

from __future__ import annotations

import base64
from pathlib import Path

from ..errors import NotFound
from ..interfaces.files import Files
from ..records.json_value import plain
from ..records.requests import RequestRecord
from ..scheduling.model.snapshot import Kind, PriorityClass
from ..schemas import JobIn, NotebookIn

_REPEATED = (PriorityClass.OPPORTUNISTIC,)
"""Classes that a job has again; what was urgent then need not be so now."""


def same_job(record: RequestRecord, files: Files) -> JobIn:
    """What was submitted, without its idempotency key.

    Raises:
        NotFound: it is a session or the service's own work, or its files are no longer there.
    """
    job = record.job
    if job is None:
        raise NotFound(f"{record.id} is a session: start it from the desk.")
    if record.kind is Kind.GRADING:
        raise NotFound(f"{record.id} grades for a course: ask for it from there once more.")
    notebook, archive = None, ""
    if job.notebook_name:
        content = _read(files.input_path(record.id), record.id).decode()
        notebook = NotebookIn(name=job.notebook_name, content=content)
    if job.archive:
        archive = base64.b64encode(_read(files.archive_path(record.id), record.id)).decode()
    return JobIn.model_validate(
        {
            "group": record.group,
            "devices": record.devices,
            "model": record.model,
            "seconds": int(record.seconds),
            "notebook": notebook,
            "command": list(job.command),
            "archive": archive,
            "workdir": job.workdir,
            "memory_bytes": job.memory_bytes,
            "retries": job.retries,
            "internet": job.internet,
            "priority": "normal" if record.priority not in _REPEATED else record.priority.value,
            "preemptible": record.preemptible,
            "image": record.image,
            "parameters": plain(job.parameters),
            "kernel": job.kernel,
            "output": job.output_name if job.notebook_name else "",
            "labels": dict(record.labels),
        }
    )


def _read(path: Path, request_id: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFound(
            f"What was submitted as {request_id} is no longer kept.",
            accepted="Submit the notebook or the files again.",
        ) from None
