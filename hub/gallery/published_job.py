"""A published job as it is stored: the fields that run it again, and the hashes of its contents.

Only the fields in ``PUBLISHED`` are copied: labels, working folders, uploaded files and keys belong
to the publisher.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import BaseModel, JsonValue, TypeAdapter

from ..admission.parameters import FieldType, ParameterField
from ..schemas import JobIn, NotebookIn

GALLERY_LABEL: Final = "gallery"
"""The label of jobs that were started from the gallery; its value is ``ITEM/VERSION``."""
PUBLISHED: Final = (
    "devices", "model", "seconds", "command", "memory_bytes", "retries", "preemptible", "image",
    "internet", "parameters", "kernel", "output", "roles", "arrangement", "must_succeed", "sweep",
)  # fmt: skip


class StoredField(BaseModel):
    """A parameter of the notebook, as ``ParameterField``."""

    name: str
    type: FieldType
    default: str
    shown: str
    help: str = ""


class PublishedJob(BaseModel):
    """One job of a version.

    Attributes:
        name: unique among the jobs of the version.
        fields: of ``JobIn``, those of ``PUBLISHED``.
        notebook, sha256: name and hash of the notebook; empty for a command.
        parameters: of the notebook; None if they cannot be read.
        output, output_sha256: name and hash of the published output; empty without one.
        after: jobs of the version that it waits for, by their place from 0: ``0`` or ``0:any``.
        results: parameters with values of jobs of the version: ``0.report.loss``.
        left_out: what was not published, one sentence each.
    """

    name: str
    fields: dict[str, JsonValue]
    notebook: str = ""
    sha256: str = ""
    parameters: list[StoredField] | None = None
    output: str = ""
    output_sha256: str = ""
    after: list[str] = []
    results: dict[str, str] = {}
    left_out: list[str] = []

    def job(self, group: str, notebook: str, labels: dict[str, str], key: str = "") -> JobIn:
        """Return the body that submits it; ``notebook`` is the content of the notebook."""
        sent = NotebookIn(name=self.notebook, content=notebook) if self.notebook else None
        return JobIn.model_validate(
            {
                **self.fields,
                "group": group,
                "notebook": sent,
                "labels": labels,
                "idempotency_key": key,
            }
        )


_JOBS = TypeAdapter(list[PublishedJob])


def stored(jobs: Sequence[PublishedJob]) -> str:
    return _JOBS.dump_json(list(jobs), exclude_defaults=True).decode()


def read(text: str) -> list[PublishedJob]:
    return _JOBS.validate_json(text)


def fields_of(parameters: Iterable[ParameterField] | None) -> list[StoredField] | None:
    if parameters is None:
        return None
    return [
        StoredField(
            name=each.name,
            type=each.type,
            default=each.default,
            shown=each.shown,
            help=each.help,
        )
        for each in parameters
    ]
