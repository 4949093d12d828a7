"""The form that submits a job: entered values, the resulting job, and errors."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from pydantic import JsonValue

from ...admission.notebook import CheckedNotebook, check_name, check_notebook
from ...admission.parameters import ParameterField, changed_values
from ...admission.script import as_notebook
from ...client import roles_file
from ...client.shell_syntax import unquoted_operator
from ...errors import CarrelError, InvalidInput, NotAMember, TooLarge
from ...groups.membership import GroupChoice
from ...records.gangs import MAX_MEMBERS
from ...schemas import MODEL_LENGTH, JobIn, NotebookIn, most_devices, parsers
from . import fields as forms_fields
from . import pickers
from .cron import CronForm
from .fields import read
from .sweep import SWEEP_FIELDS, sweep_body

PARAMETER = "parameter-"
_PLAIN = (
    "kind", "group", "devices", "model", "time", "memory", "retries", "after", "results",
    "secrets", "labels", "kernel", "output", "command", "workdir", "key", "source", "priority",
    "preemptible", "deadline", "zone", "image", "internet", "nodes", *SWEEP_FIELDS,
)  # fmt: skip  # the form's fields, by section
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenNotebook:
    """The selected notebook with its parameters."""

    name: str
    content: str
    checked: CheckedNotebook

    @classmethod
    def read(cls, name: str, data: bytes) -> ChosenNotebook:
        """Read a notebook or a script.

        Raises:
            InvalidInput, TooLarge: with the field ``notebook``.
        """
        name = name.replace("\\", "/").rpartition("/")[2]
        try:
            notebook = as_notebook(NotebookIn(name=name, content=data.decode("utf-8-sig")))
            name, text = notebook.name, notebook.content
            check_name(name, "notebook name")
            return cls(name=name, content=text, checked=check_notebook(name, text))
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{name} is not UTF-8.",
                accepted="Select a Jupyter notebook (.ipynb) or a Python script (.py).",
                field="notebook",
            ) from None
        except (InvalidInput, TooLarge) as error:
            error.field = "notebook"
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForm:
    """The values as entered.

    Attributes:
        nodes: members that run the command together; empty for one.
        sweep: the values of a sweep; the next seven fields are about it, too.
        key: idempotency key, so that sending a form twice submits one job.
        zone: of the deadline.
        source: origin of the notebook: empty for an upload, ``home:PATH``, ``again:ID``.
        parameters: values by parameter; an empty one keeps the value of the notebook.
        carried: parameters without a field, of a job that runs again.
        archive: uploaded files, of a job that runs again.
        times: of a schedule; by default the job is submitted once.
        notebook: the uploaded or selected notebook.
    """

    kind: str = "notebook"
    group: str = ""
    devices: str = "0"
    model: str = ""
    time: str = "1h"
    memory: str = ""
    retries: str = ""
    priority: str = "normal"
    preemptible: str = "yes"
    deadline: str = ""
    zone: str = ""
    after: str = ""
    results: str = ""
    secrets: str = ""
    labels: str = ""
    kernel: str = ""
    output: str = ""
    command: str = ""
    workdir: str = ""
    nodes: str = ""
    sweep: str = ""
    search_trials: str = ""
    prune: str = "none"
    parallel: str = ""
    objective: str = ""
    goal: str = "smallest"
    trial_time: str = ""
    share: str = "yes"
    image: str = ""
    internet: str = "yes"
    source: str = ""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    parameters: Mapping[str, str] = field(default_factory=dict)
    carried: Mapping[str, JsonValue] = field(default_factory=dict)
    archive: str = ""
    times: CronForm = field(default_factory=CronForm)
    notebook: ChosenNotebook | None = None
    problem: str = ""
    accepted: str = ""
    field: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, object]) -> JobForm:
        texts = {name: text for name, text in fields.items() if isinstance(text, str)}
        texts |= {"time": pickers.span(texts, "time")} if "time" in texts else {}
        texts |= {"memory": pickers.memory(texts, "memory")}
        given = {name: texts[name].strip() for name in _PLAIN if texts.get(name, "").strip()}
        parameters = {
            name.removeprefix(PARAMETER): text
            for name, text in texts.items()
            if name.startswith(PARAMETER)
        }
        kept = [name for name in ("devices", "time", "retries") if name in texts]
        blank: dict[str, str] = dict.fromkeys(kept, "")
        return cls(**(blank | given), parameters=parameters, times=CronForm.filled(texts))  # type: ignore[arg-type]

    @property
    def fields(self) -> tuple[ParameterField, ...] | None:
        """The parameters of the notebook; None if they cannot be read."""
        return self.notebook.checked.fields if self.notebook else None

    def entry(self, parameter: ParameterField) -> str:
        """Return the value of a parameter's field."""
        return self.parameters.get(parameter.name, parameter.shown)

    def job(self, now: float) -> JobIn:
        """Return the body of the job. Raises InvalidInput with the field."""
        common = {
            "group": self.group,
            "devices": read(parsers.devices, self.devices, "devices"),
            "model": self.model[:MODEL_LENGTH] or None,
            "seconds": read(parsers.seconds, self.time, "time"),
            "memory_bytes": read(parsers.memory_bytes, self.memory, "memory") if self.memory else 0,
            "retries": _read(
                "retries", int, self.retries, "Enter a whole number, or leave it empty."
            )
            if self.retries
            else None,
            "priority": self.priority if self.priority in _PRIORITIES else "normal",
            "preemptible": self.preemptible != "no",
            "deadline": self._deadline(now),
            "after": self.after.replace(",", " ").split(),
            "secrets": self.secrets.replace(",", " ").split(),
            "labels": dict(read(parsers.label, part, "labels") for part in self._words("labels")),
            "results": self._results(),
            "archive": self.archive,
            "workdir": self.workdir,
            "image": self.image,
            "internet": self.internet != "no",
            "idempotency_key": self.key,
        }
        if not self.group:
            raise InvalidInput(
                "No group is selected.", accepted="Select one from the list.", field="group"
            )
        more = self._command() if self.kind == "command" else self._notebook()
        return JobIn.model_validate(self._of_members({**common, **more}))

    def _of_members(self, fields: dict[str, object]) -> dict[str, object]:
        """Return the fields of a job that runs its command several times together."""
        if self.kind != "command" or not self.nodes:
            return fields
        accepted = f"A whole number from 1 to {MAX_MEMBERS}, or nothing for one member."
        nodes = _read("members", int, self.nodes, accepted, "nodes")
        if not 1 <= nodes <= MAX_MEMBERS:
            raise InvalidInput(
                f"A job cannot have {nodes} members.", accepted=accepted, field="nodes"
            )
        return roles_file.of_nodes(nodes, fields)

    def _deadline(self, now: float) -> float | None:
        if not self.deadline:
            return None
        return forms_fields.moment(self.deadline, self.zone, now, "deadline")

    def _results(self) -> dict[str, str]:
        pairs = [part.partition("=") for part in self._words("results")]
        if any(not (name and equals) for name, equals, _ in pairs):
            raise InvalidInput(
                f"Invalid results: {self.results[:80]!r}.",
                accepted=_QUOTED["results"],
                field="results",
            )
        return {name: value for name, _, value in pairs}

    def _words(self, name: Literal["command", "labels", "results"]) -> list[str]:
        text: str = getattr(self, name)
        try:
            return shlex.split(text)
        except ValueError as error:
            raise InvalidInput(
                f"The {name} is not quoted correctly: {error}.",
                accepted=_QUOTED[name],
                field=name,
            ) from None

    def _command(self) -> dict[str, object]:
        words = self._words("command")
        if found := unquoted_operator(self.command):
            raise InvalidInput(
                f"No shell runs the command, so that {found} would be passed on as text.",
                accepted=f"Quote it ('{found}'), or run a shell: sh -c 'COMMAND'",
                field="command",
            )
        if not words:
            raise InvalidInput(
                "The command is missing.",
                accepted="Such as: python train.py --lr 0.1",
                field="command",
            )
        return {"command": words}

    def _notebook(self) -> dict[str, object]:
        if self.notebook is None:
            raise InvalidInput(
                "No notebook is selected.",
                accepted="Select a Jupyter notebook (.ipynb) or a Python script (.py).",
                field="notebook",
            )
        sweep = sweep_body({name: getattr(self, name) for name in SWEEP_FIELDS})
        devices = read(parsers.devices, self.devices, "devices")
        return {
            "sweep": sweep,
            "devices": devices * (sweep.parallel if sweep is not None else 1),
            "notebook": NotebookIn(name=self.notebook.name, content=self.notebook.content),
            "parameters": {
                **self.carried,
                **changed_values(self.fields or (), self.parameters),
            },
            "kernel": self.kernel,
            "output": self.output,
        }

    def refused(self, error: CarrelError, groups: list[GroupChoice]) -> JobForm:
        """Return the same values with an error, at the field that caused it."""
        return replace(
            self,
            problem=error.message,
            accepted=error.accepted,
            field=_ALIASES.get(error.field, error.field) or self._field_of(error, groups),
        )

    def _field_of(self, error: CarrelError, groups: list[GroupChoice]) -> str:
        if isinstance(error, NotAMember):
            return "group"
        chosen = next((group for group in groups if group.name == self.group), None)
        if chosen is None:
            return ""
        try:
            devices, seconds = int(self.devices), parsers.seconds(self.time)
        except (ValueError, InvalidInput):
            return ""
        if seconds > chosen.max_seconds:
            return "time"
        return "" if 0 <= devices <= most_devices(chosen) else "devices"


_PRIORITIES = ("opportunistic", "normal", "urgent")
_QUOTED = {
    "command": "Quote as in a shell, such as: python train.py --name 'my run'.",
    "labels": "Such as sweep=7 'kind=first try'.",
    "results": "Such as lr=j-7k2m4qpz.best.lr 'rate=j-9x3k7mpa.report.learning rate'.",
}
_ALIASES = {"seconds": "time", "memory_bytes": "memory"}


def _read(
    name: str, kind: Callable[[str], _Value], text: str, accepted: str, field: str = ""
) -> _Value:
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(
            f"Invalid number of {name}: {text[:40]!r}.", accepted=accepted, field=field or name
        ) from None
