"""Read the jobs of a pipeline from a TOML file.

::

    [jobs.prepare]
    notebook = "prepare.ipynb"

    [jobs.train]
    notebook = "train.ipynb"
    parameters = { lr = 0.05 }
    devices = 1
    time = "2h"
    after = ["prepare"]

    [jobs.report]
    command = "python report.py"
    after = ["prepare", "train:any"]
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final

from ..errors import InvalidInput
from ..records.dependencies import Condition
from ..schemas import parsers
from .toml_file import read_toml

_EXAMPLE: Final = (
    "A TOML file with a table [jobs.NAME] for each job, and its notebook or command in it."
)
_NAME_LENGTH: Final = 64
_COPIED: Final = (
    "devices", "model", "retries", "priority", "preemptible", "image", "internet", "parameters",
    "kernel", "output", "labels",
)  # fmt: skip  # as in the body of a job
_KEYS: Final = (
    "notebook", "command", "after", "time", "memory", "inputs", "upload", "workdir", *_COPIED,
)  # fmt: skip
_MOST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineJob:
    """One job of a pipeline.

    Attributes:
        name: within the file.
        fields: of the body of the job, without working folder, group and dependencies.
        after: names of the jobs that it waits for, with their condition.
        folder: of its notebook, or of the file.
        needs_files: whether it needs the files of that folder.
    """

    name: str
    fields: Mapping[str, object]
    after: Sequence[tuple[str, str]]
    folder: Path
    needs_files: bool
    inputs: Sequence[Path] = ()
    upload: bool = False
    workdir: str | None = None

    def dependencies(self, ids: Mapping[str, str]) -> list[str]:
        """Return what it waits for, by the ids of the other jobs."""
        return [f"{ids[name]}:{condition}" for name, condition in self.after]


def read(path: Path) -> list[PipelineJob]:
    """Return the jobs of a pipeline, each after those that it waits for.

    Raises:
        InvalidInput: the file or one of its notebooks cannot be read, has unknown keys or names,
            or jobs that wait for each other in a circle.
    """
    found = read_toml(path, _EXAMPLE)
    tables = found.get("jobs")
    _check_keys(found, ("jobs",), f"{path}")
    if not isinstance(tables, dict) or not tables:
        raise InvalidInput(f"{path} has no jobs.", accepted=_EXAMPLE)
    if len(tables) > _MOST:
        raise InvalidInput(f"{path} has {len(tables)} jobs.", accepted=f"At most {_MOST}.")
    long = [name for name in tables if not name or len(name) > _NAME_LENGTH]
    if long:
        raise InvalidInput(
            f"{path}: a job cannot have the name {long[0][:_NAME_LENGTH]!r}.",
            accepted=f"1 to {_NAME_LENGTH} characters.",
        )
    jobs = {name: _job(path, name, table) for name, table in tables.items()}
    return [jobs[name] for name in _ordered(path, jobs)]


def _job(path: Path, name: str, table: Any) -> PipelineJob:
    where = f"{path}: the job {name[:_NAME_LENGTH]}"
    if not isinstance(table, dict):
        raise InvalidInput(f"{where} is not a table.", accepted=_EXAMPLE)
    _check_keys(table, _KEYS, where)
    if ("notebook" in table) == ("command" in table):
        both = "both a notebook and" if "notebook" in table else "neither a notebook nor"
        raise InvalidInput(
            f"{where} has {both} a command.",
            accepted='notebook = "train.ipynb", or command = "python train.py".',
        )
    fields = {key: table[key] for key in _COPIED if key in table}
    if "time" in table:
        time = table["time"]
        fields["seconds"] = parsers.seconds(time) if isinstance(time, str) else time
    if "memory" in table:
        memory = table["memory"]
        fields["memory_bytes"] = parsers.memory_bytes(memory) if isinstance(memory, str) else memory
    folder = path.parent
    if "notebook" in table:
        notebook = path.parent / _text(table, "notebook", where)
        folder = notebook.parent
        fields["notebook"] = parsers.notebook(notebook)
    else:
        fields["command"] = _words(table["command"], where)
    return PipelineJob(
        name=name,
        fields=fields,
        after=[_dependency(text, where) for text in _texts(table, "after", where)],
        folder=folder,
        needs_files="command" in table,
        inputs=[path.parent / each for each in _texts(table, "inputs", where)],
        upload=table.get("upload") is True,
        workdir=_text(table, "workdir", where) if "workdir" in table else None,
    )


def _ordered(path: Path, jobs: Mapping[str, PipelineJob]) -> list[str]:
    graph: dict[str, list[str]] = {}
    for name, job in jobs.items():
        graph[name] = [other for other, _ in job.after]
        unknown = [other for other in graph[name] if other not in jobs]
        if unknown:
            raise InvalidInput(
                f"{path}: the job {name} waits for {unknown[0][:_NAME_LENGTH]}, which is not in "
                "the file.",
                accepted=f"Jobs of the file: {', '.join(jobs)}.",
            )
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        # Each waits for the one before it.
        circle = " → ".join(reversed(error.args[1]))
        raise InvalidInput(
            f"{path}: jobs wait for each other in a circle: {circle}.",
            accepted="Remove one of these names from after.",
        ) from error


def _dependency(text: str, where: str) -> tuple[str, str]:
    name, colon, condition = text.partition(":")
    if not name or (colon and condition not in tuple(Condition)):
        raise InvalidInput(
            f"{where} waits for {text[:_NAME_LENGTH]!r}.",
            accepted="NAME or NAME:ok, which must succeed, or NAME:any, which must end.",
        )
    return name, condition or Condition.OK


def _words(command: Any, where: str) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise InvalidInput(
            f"{where} has a command with an open quotation.", accepted="Close it."
        ) from error
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise InvalidInput(
            f"{where} has no valid command.",
            accepted="A list of program and arguments, or a string in shell syntax.",
        )
    return words


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(table[key], str):
        raise InvalidInput(f"{where}: {key} cannot be {table[key]!r:.80}.", accepted="A string.")
    return str(table[key])


def _texts(table: Mapping[str, Any], key: str, where: str) -> list[str]:
    found = table.get(key, [])
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InvalidInput(
            f"{where}: {key} cannot be {found!r:.80}.", accepted="A list of strings."
        )
    return texts


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = sorted(table.keys() - set(known))
    if unknown:
        raise InvalidInput(
            f"{where} has an unknown key {unknown[0][:_NAME_LENGTH]!r}.",
            accepted=f"Known keys: {', '.join(known)}.",
        )
