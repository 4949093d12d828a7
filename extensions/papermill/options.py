"""The resources of a job that papermill submits: keyword arguments, or environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, Self

from ...hub.errors import InvalidInput
from ...hub.schemas import parsers

VARIABLE: Final = "CARREL_JOB_"
"""Prefix of the variables, before the name in capitals. Inside a session or a job, the variables
without ``JOB`` describe its own lease."""
_OF_PAPERMILL: Final = frozenset(
    {"input_path", "log_output", "stdout_file", "stderr_file", "start_timeout", "execution_timeout"}
)
"""Arguments that papermill passes to each engine."""
_BOOLEANS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of ``carrel.submit`` under the same names, as they were given.

    All but ``labels`` and ``inputs`` can be set in the environment too: see ``VARIABLE``.
    """

    devices: int | str = 0
    model: str = ""
    time: str | int = "1h"
    group: str = ""
    memory: str | int = ""
    retries: int | str = 0
    priority: str = "normal"
    image: str = ""
    internet: bool | str = True
    upload: bool | str = False
    workdir: str | None = None
    site: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    inputs: Sequence[str | Path] = ()

    @classmethod
    def of(cls, arguments: Mapping[str, object], environment: Mapping[str, str]) -> Self:
        """Return the given arguments, before the variables, before the defaults.

        Raises:
            InvalidInput: an argument is unknown.
        """
        known = [each.name for each in fields(cls)]
        unknown = sorted(arguments.keys() - known - _OF_PAPERMILL)
        if unknown:
            raise InvalidInput(
                f"The engine carrel has no option {', '.join(unknown)}.",
                accepted=f"Its options: {', '.join(known)}.",
            )
        if arguments.get("execution_timeout"):
            raise InvalidInput(
                "A job has no time limit for each cell.",
                accepted=f"Set the limit of the whole job: time='30m', or {VARIABLE}TIME=30m.",
            )
        variables = {name: environment.get(VARIABLE + name.upper(), "") for name in known[:-2]}
        given = {name: arguments[name] for name in known if arguments.get(name) is not None}
        found = {name: text for name, text in variables.items() if text} | given
        return cls(**found)  # type: ignore[arg-type]  # ``fields`` checks the values

    @classmethod
    def current(cls, arguments: Mapping[str, object]) -> Self:
        return cls.of(arguments, os.environ)

    def fields(self) -> dict[str, object]:
        """Return the fields of the job's body. Raises InvalidInput."""
        found: dict[str, object] = {
            "devices": _whole("devices", self.devices),
            "seconds": parsers.seconds(self.time) if isinstance(self.time, str) else self.time,
            "internet": _boolean("internet", self.internet),
            "labels": dict(self.labels),
        }
        if self.memory:
            text = self.memory
            found["memory_bytes"] = parsers.memory_bytes(text) if isinstance(text, str) else text
        if retries := _whole("retries", self.retries):
            found["retries"] = retries
        if self.priority != "normal":
            found["priority"] = self.priority
        for name in ("model", "image"):
            if value := getattr(self, name):
                found[name] = value
        return found

    @property
    def uploads(self) -> bool:
        return _boolean("upload", self.upload)


def _whole(name: str, value: int | str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidInput(
            f"{VARIABLE}{name.upper()} is {str(value)[:40]!r}.", accepted="A whole number."
        ) from None


def _boolean(name: str, value: bool | str) -> bool:
    if isinstance(value, bool):
        return value
    if value.lower() not in _BOOLEANS:
        raise InvalidInput(f"{VARIABLE}{name.upper()} is {value[:40]!r}.", accepted="1 or 0.")
    return _BOOLEANS[value.lower()]
