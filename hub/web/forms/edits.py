"""Merge of an edited form with the changes of other users since it was opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ...records.audit import AuditEntry
from ...records.json_value import Json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

F = TypeVar("F", bound="DataclassInstance")
M = TypeVar("M", bound=BaseModel)


def merged(typed: F, opened: F, current: F) -> F:
    """Return the fields that the user changed, and the current values of all others.

    ``opened`` is the form as it was sent to the user.
    """
    names = [field.name for field in fields(typed)]
    untouched = [name for name in names if getattr(typed, name) == getattr(opened, name)]
    return replace(typed, **{name: getattr(current, name) for name in untouched})


def as_before(shown: M, values: Mapping[str, Json]) -> M:
    """Return a model with the values that it had before a change."""
    known = {name: value for name, value in values.items() if name in type(shown).model_fields}
    return type(shown).model_validate(shown.model_dump() | known)


def earlier_values(later: Sequence[AuditEntry]) -> Mapping[str, Json]:
    """Return the values that changes have replaced; ``later`` is newest first."""
    values: dict[str, Json] = {}
    for change in later:
        values |= change.before
    return values
