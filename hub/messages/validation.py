"""Turn pydantic's errors into one sentence that names the field and the accepted values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from ..errors import InvalidInput

_SHOWN_CHARACTERS = 40


def invalid_body(error: ValidationError, model: type[BaseModel]) -> InvalidInput:
    """Describe the first error in a body."""
    return invalid(error.errors(include_url=False), model.model_json_schema())


def invalid(mistakes: Sequence[Any], schema: Mapping[str, Any]) -> InvalidInput:
    """Describe the first of pydantic's errors: the field, its value, what is accepted."""
    mistake = mistakes[0]
    kind = str(mistake["type"])
    path = list(mistake["loc"])
    name = ".".join(str(part) for part in path)
    if kind.startswith("json_"):
        why = str(mistake.get("ctx", {}).get("error", "")).strip()
        return InvalidInput(f"The body is not valid JSON: {why}.", accepted="Send one JSON object.")
    if kind == "missing":
        message = f"The field {name!r} is missing."
    elif kind == "extra_forbidden":
        known = _known_fields(schema, path[:-1])
        return InvalidInput(f"There is no field {name!r}.", accepted=f"Known fields: {known}.")
    elif not path:
        message = f"The body is {_shown(mistake['input'])}."
    else:
        message = f"The field {name!r} is {_shown(mistake['input'])}."
    if kind == "value_error":
        message += f" {mistake['ctx']['error']}"
    return InvalidInput(message, accepted=_accepted(mistake, schema, path), field=name)


def _accepted(mistake: Mapping[str, Any], schema: Mapping[str, Any], path: Sequence[Any]) -> str:
    described = _described(_field(schema, path))
    if described:
        return f"Accepted: {described}."
    if mistake["type"] == "value_error":  # its sentence is in the message
        return ""
    wanted = str(mistake["msg"]).removeprefix("Input ")
    return f"{wanted[:1].upper()}{wanted[1:]}."


def _field(schema: Mapping[str, Any], path: Sequence[Any]) -> Mapping[str, Any]:
    """Return the JSON schema of the field at a path; empty if unknown."""
    found: Mapping[str, Any] = schema
    for part in path:
        found = _resolved(found, schema)
        if isinstance(part, int):
            found = found.get("items", {})
        else:
            found = found.get("properties", {}).get(part, found.get("additionalProperties", {}))
        if not isinstance(found, Mapping):
            return {}
    return _resolved(found, schema)


def _resolved(found: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    # A nullable field has two alternatives; describe the one that is not null.
    choices = [choice for choice in found.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        found = choices[0]
    ref = found.get("$ref")
    if not isinstance(ref, str):
        return found
    resolved = schema.get("$defs", {}).get(ref.rpartition("/")[2], {})
    return resolved if isinstance(resolved, Mapping) else {}


def _known_fields(schema: Mapping[str, Any], path: Sequence[Any]) -> str:
    return ", ".join(_field(schema, path).get("properties", {})) or "none"


_TYPE_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def _described(field: Mapping[str, Any]) -> str:
    if "const" in field:
        return repr(field["const"])
    if "enum" in field:
        return "one of " + ", ".join(repr(value) for value in field["enum"])
    text = _TYPE_NAMES.get(str(field.get("type")), "")
    low, high = field.get("minLength"), field.get("maxLength")
    if text == "text" and high:
        text += f" of {low or 0} to {high} characters"
    if "minimum" in field:
        text += f" of at least {field['minimum']}"
    if "maxItems" in field:
        text += f" of at most {field['maxItems']} items"
    if text == "an object" and field.get("properties"):
        text += f" with {', '.join(field['properties'])}"
    return text


def _shown(value: object) -> str:
    """Return the value, shortened: ``'two' (text)``."""
    match value:
        case None | bool():
            return json.dumps(value)
        case int() | float():
            return f"{str(value)[:_SHOWN_CHARACTERS]} (a number)"
        case str():
            short = len(value) <= _SHOWN_CHARACTERS
            return f"{value!r} (text)" if short else f"text of {len(value)} characters"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
