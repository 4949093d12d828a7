"""The form fields for a notebook's parameters: their types, and the parsing of entries."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from ..errors import InvalidInput
from ..records.json_value import check_depth
from ..schemas.base import is_finite


class FieldType(StrEnum):
    """The type of a parameter, as the form names it."""

    WHOLE = "whole number"
    NUMBER = "number"
    YES_NO = "yes or no"
    TEXT = "text"
    OTHER = "JSON"
    """Lists, mappings, null, and values that the notebook computes."""


_BY_ANNOTATION = {
    "int": FieldType.WHOLE,
    "float": FieldType.NUMBER,
    "bool": FieldType.YES_NO,
    "str": FieldType.TEXT,
}
_YES_NO = {"true": True, "false": False}
_NOT_CONSTANT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterField:
    """A variable that the notebook's ``parameters`` cell assigns.

    Attributes:
        default: the source text of the default.
        shown: the default as an entry of the form; empty if the notebook computes it.
        help: the comment on its line.
    """

    name: str
    type: FieldType
    default: str
    shown: str
    help: str = ""

    @classmethod
    def of(cls, name: str, *, annotation: str, default: str, help_text: str) -> ParameterField:
        """Create a field from papermill's data; without an annotation the default sets the type."""
        value = _constant(default)
        found = _BY_ANNOTATION.get(annotation, _type_of(value))
        return cls(
            name=name, type=found, default=default, shown=_entry(value, found), help=help_text or ""
        )

    def read(self, entry: str) -> JsonValue:
        """Parse an entry of the form.

        Raises:
            InvalidInput: the entry does not have the parameter's type.
        """
        text = entry if self.type is FieldType.TEXT else entry.strip()
        try:
            return _read(self.type, text)
        except (ValueError, RecursionError):
            raise InvalidInput(
                f"{text[:40]!r} is not a valid value of {self.name}.",
                accepted=_ACCEPTED[self.type],
                field=f"parameter-{self.name}",
            ) from None


def changed_values(
    fields: Iterable[ParameterField], entries: Mapping[str, str]
) -> dict[str, JsonValue]:
    """Parse the entries of a form that differ from the notebook, so that a request records only
    these; a field without an entry, or with an empty one that is not text, keeps its default.

    Raises:
        InvalidInput: an entry does not have the type of its parameter.
    """
    return {
        field.name: field.read(entry)
        for field in fields
        if (entry := entries.get(field.name, field.shown)) != field.shown
        and (entry.strip() or field.type is FieldType.TEXT)
    }


_ACCEPTED = {
    FieldType.WHOLE: "A whole number such as 10.",
    FieldType.NUMBER: "A number such as 0.05.",
    FieldType.YES_NO: "true or false.",
    FieldType.TEXT: "Any text.",
    FieldType.OTHER: 'JSON such as [1, 2], {"a": 0.5}, "text" or null.',
}


def _read(kind: FieldType, text: str) -> JsonValue:
    match kind:
        case FieldType.WHOLE:
            return int(text)
        case FieldType.NUMBER:
            number = float(text)
            if not math.isfinite(number):
                raise ValueError(text)
            return number
        case FieldType.YES_NO:
            if text.lower() not in _YES_NO:
                raise ValueError(text)
            return _YES_NO[text.lower()]
        case FieldType.TEXT:
            return text
        case FieldType.OTHER:
            value: JsonValue = json.loads(text)
            check_depth(value)
            if not is_finite(value):
                raise ValueError(text)
            return value


def _constant(default: str) -> object:
    for read in (ast.literal_eval, json.loads):
        try:
            return read(default)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return _NOT_CONSTANT


def _type_of(value: object) -> FieldType:
    match value:
        case bool():
            return FieldType.YES_NO
        case int():
            return FieldType.WHOLE
        case float():
            return FieldType.NUMBER
        case str():
            return FieldType.TEXT
        case _:
            return FieldType.OTHER


def _entry(value: object, kind: FieldType) -> str:
    if value is _NOT_CONSTANT or (value is None and kind is not FieldType.OTHER):
        return ""
    if isinstance(value, str) and kind is FieldType.TEXT:
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return ""
