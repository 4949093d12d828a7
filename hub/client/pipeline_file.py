"""Read the jobs of a pipeline from a TOML file.

::

    [jobs.prepare]
    notebook = "prepare.ipynb"

    [jobs.train]
    notebook = "train.ipynb"
    parameters = { epochs = 10 }
    devices = 1
    time = "2h"
    sweep = { grid = { lr = [0.1, 0.01] }, objective = "loss" }
    after = ["prepare"]

    [jobs.test]
    notebook = "test.ipynb"
    results = { lr = "train.best.lr" }
    after = ["train"]

    [jobs.report]
    command = "python report.py"
    after = ["prepare", "test:any"]
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final

from ..errors import InvalidInput
from ..records.dependencies import ACCEPTED_RESULT, Condition, ResultReference
from ..schemas import parsers
from ..schemas.sweeps import SweepIn
from .toml_file import read_toml

_EXAMPLE: Final = (
    "A TOML file with a table [jobs.NAME] for each job, and its notebook or command in it."
)
_NAME_LENGTH: Final = 64
_COPIED: Final = (
    "devices", "model", "retries", "priority", "preemptible", "image", "internet", "parameters",
    "kernel", "output", "labels", "secrets",
)  # fmt: skip  # as in the body of a job
_KEYS: Final = (
    "notebook", "command", "after", "results", "sweep", "time", "memory", "inputs", "upload",
    "workdir", *_COPIED,
)  # fmt: skip
_MOST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineJob:
    """One job of a pipeline.

    Attributes:
        name: within the file.
        fields: of the body of the job, without working folder, group and dependencies.
        after: names of the jobs that it waits for, with their condition.
        results: by parameter, the value that it gets, with the name of a job that it waits for.
        folder: of its notebook, or of the file.
        needs_files: whether it needs the files of that folder.
    """

    name: str
    fields: Mapping[str, object]
    after: Sequence[tuple[str, str]]
    results: Mapping[str, ResultReference]
    folder: Path
    needs_files: bool
    inputs: Sequence[Path] = ()
    upload: bool = False
    workdir: str | None = None

    def references(self, ids: Mapping[str, str]) -> dict[str, object]:
        """Return the fields of the body that name other jobs, by the ids of these."""
        return {
            "after": [f"{ids[name]}:{condition}" for name, condition in self.after],
            "results": {
                parameter: str(replace(each, job=ids[each.job]))
                for parameter, each in self.results.items()
            },
        }


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
    if "sweep" in table:
        sweep = fields["sweep"] = _sweep(table["sweep"], where)
        # The devices in the file are those of one trial.
        parallel, devices = sweep.get("parallel", 1), fields.get("devices", 0)
        if isinstance(parallel, int) and isinstance(devices, int):
            fields["devices"] = parallel * devices
    after = [_dependency(text, where) for text in _texts(table, "after", where)]
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
        after=after,
        results=_results(table, [name for name, _ in after], where),
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


def _sweep(table: Any, where: str) -> dict[str, Any]:
    """Return the body of a sweep; in the file, its space and its options are one table."""
    if not isinstance(table, dict):
        raise InvalidInput(
            f"{where}: sweep cannot be {table!r:.80}.",
            accepted='sweep = { grid = { lr = [0.1, 0.01] }, parallel = 2, objective = "loss" }',
        )
    options = {key: table[key] for key in table.keys() & SweepIn.model_fields.keys()}
    if "trial_time" in table:
        time = table["trial_time"]
        options["trial_seconds"] = parsers.seconds(time) if isinstance(time, str) else time
    space = {key: table[key] for key in table if key not in (*options, "trial_time")}
    return {"space": space} | options


def _results(
    table: Mapping[str, Any], after: Sequence[str], where: str
) -> Mapping[str, ResultReference]:
    """Return the parameters that get values of the jobs that this one waits for."""
    given = table.get("results", {})
    if not isinstance(given, dict):
        raise InvalidInput(
            f"{where}: results cannot be {given!r:.80}.",
            accepted='results = { lr = "NAME.best.lr" }',
        )
    found = {}
    for parameter, text in given.items():
        if not isinstance(text, str):
            raise InvalidInput(
                f"{where}: the result {parameter[:_NAME_LENGTH]} cannot be {text!r:.80}.",
                accepted=ACCEPTED_RESULT.replace("JOB", "NAME"),
            )
        # A name may contain a dot.
        names = [name for name in after if text.startswith(f"{name}.")]
        if not names:
            waits = ", ".join(after) or "no job"
            raise InvalidInput(
                f"{where}: the parameter {parameter[:_NAME_LENGTH]} is to have {text[:80]!r}, "
                f"which is no value of a job that it waits for. It waits for {waits}.",
                accepted=ACCEPTED_RESULT.replace("JOB", "NAME"),
            )
        name = max(names, key=len)
        found[parameter] = ResultReference.of(name, text[len(name) + 1 :])
    return found


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
