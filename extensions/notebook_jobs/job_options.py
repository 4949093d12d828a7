"""Options of a job that the stock form has no field for: parameters named ``carrel.…``.

A dot is in no name of a variable, so that they never collide with parameters of the notebook.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from pydantic import JsonValue

from ...hub.errors import InvalidInput
from ...hub.schemas import RequestOut, parsers
from ...hub.schemas.schedules import ScheduledJobOut

PREFIX: Final = "carrel."
DEFAULT_SECONDS: Final = 3600
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], JsonValue]]]] = {
    "time": ("seconds", parsers.seconds),
    "memory": ("memory_bytes", parsers.memory_bytes),
    "retries": ("retries", parsers.parameter),
    "priority": ("priority", str),
    "kernel": ("kernel", str),
}
"""The field of the job's body and its parser, by option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenParameters:
    """The parameters of a form, divided into those of the notebook and fields of the job."""

    parameters: Mapping[str, JsonValue]
    fields: Mapping[str, JsonValue]

    @classmethod
    def parse(
        cls, given: Mapping[str, object] | None, options: Mapping[str, object] | None = None
    ) -> Self:
        """Parse what was typed: numbers, true, false, lists, quoted text; all else is text.

        Args:
            options: the job's options without the prefix, as programs send them in
                ``runtime_environment_parameters``.

        Raises:
            InvalidInput: an option is unknown, or its value is invalid.
        """
        parameters: dict[str, JsonValue] = {}
        fields: dict[str, JsonValue] = {"seconds": DEFAULT_SECONDS}
        prefixed = {f"{PREFIX}{name}": value for name, value in (options or {}).items()}
        for name, value in {**prefixed, **(given or {})}.items():
            text = str(value).strip()
            if not name.startswith(PREFIX):
                parameters[name.strip()] = _value(text)
                continue
            if name.removeprefix(PREFIX) not in _FIELDS:
                raise InvalidInput(
                    f"There is no option {name[:80]!r}.",
                    accepted=f"Options: {', '.join(PREFIX + each for each in _FIELDS)}.",
                )
            field, parse = _FIELDS[name.removeprefix(PREFIX)]
            fields[field] = parse(text)
        return cls(parameters=parameters, fields=fields)


def as_typed(job: RequestOut | ScheduledJobOut) -> dict[str, str]:
    """Return the parameters and options of a job as one could type them into the form."""
    typed = {name: _text(value) for name, value in job.parameters.items()}
    if job.seconds != DEFAULT_SECONDS:
        minutes, rest = divmod(job.seconds, 60)
        typed[f"{PREFIX}time"] = f"{job.seconds}s" if rest else f"{minutes}m"
    if job.memory_bytes:
        typed[f"{PREFIX}memory"] = f"{job.memory_bytes // 2**20}MiB"
    if job.retries is not None:
        typed[f"{PREFIX}retries"] = str(job.retries)
    if job.priority != "normal":
        typed[f"{PREFIX}priority"] = job.priority
    return typed


def _value(text: str) -> JsonValue:
    """Parse a value; in jupyter-scheduler's own form, values are Python expressions."""
    if text.startswith(("[", "{", "'")):
        for read in (json.loads, ast.literal_eval):
            try:
                found: JsonValue = read(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            return found
    return parsers.parameter(text)


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        plain = _value(value) == value
    except InvalidInput:  # it looks like a number that is too large
        plain = False
    return value if plain else json.dumps(value, ensure_ascii=False)
