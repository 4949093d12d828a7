"""Copy the fields that a job has under one name in its body, in the store, and in its view.

A new field of ``JobSpec`` that ``JobIn`` and ``RequestOut`` have under the same name needs no line
where requests are built, repeated, and shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

from pydantic import BaseModel

from ..records.dependencies import ResultParameter
from ..records.json_value import plain
from ..records.requests import JobSpec, RequestRecord, SweepOrder
from ..schemas import JobIn

Stored = JobSpec | RequestRecord

_BY_KIND = frozenset({"command", "parameters", "kernel"})
"""Set for either a notebook or a command, after separate checks."""
_CONVERTED = frozenset({"archive", "results", "secrets", "sweep"})
"""The body has the content of the archive, the job only a flag; the others are checked later."""


def options(body: JobIn) -> dict[str, Any]:
    """Return the fields of ``JobSpec`` that any job copies unchanged from the body."""
    names = _common(JobSpec, JobIn) - _BY_KIND - _CONVERTED
    return {name: getattr(body, name) for name in names}


def body_fields(job: JobSpec) -> dict[str, Any]:
    """Return the fields of a body that would submit this job again; without its files."""
    names = _common(JobSpec, JobIn) - _CONVERTED
    return {name: _as_wire(getattr(job, name)) for name in names}


def view_fields(
    stored: Stored, view: type[BaseModel], *, without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the stored fields that the view has under the same name."""
    names = _common(stored, view) - frozenset(without)
    return {name: _as_wire(getattr(stored, name)) for name in names}


def _common(stored: Stored | type[Stored], schema: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.name for field in fields(stored)) & schema.model_fields.keys()


def _as_wire(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, ResultParameter):
        return dict(value.as_json())
    if isinstance(value, SweepOrder):
        return {name: field for name, field in value.as_json().items() if name != "space"}
    return list(map(_as_wire, value)) if isinstance(value, tuple) else value
