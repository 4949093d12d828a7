"""``SubmitForm``: a notebook's parameters as fields, and a button that submits it as a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

import ipywidgets
from pydantic import JsonValue

from ...hub.admission.notebook import check_notebook
from ...hub.admission.parameters import FieldType, ParameterField
from ...hub.client import Client, job_builder
from ...hub.errors import CarrelError, NotAMember
from ...hub.messages import units
from ...hub.schemas import GroupOut, JobIn, NotebookIn, RequestOut, most_devices, parsers
from .views import JobView

_WIDE = {"description_width": "9rem"}
_FILL = ipywidgets.Layout(width="min(34rem, 100%)")
_FIELD_MARGIN = "0 0 0.3rem 9.6rem"
"""Aligns text below a field with its entry."""
_TIME_UNITS = {"minutes": "m", "hours": "h", "days": "d"}
_UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_SIZE_UNITS = {"GiB": "GiB", "MiB": "MiB"}
_ERROR_COLOUR = "var(--jp-error-color1, #9b2226)"
_NOTE_COLOUR = "var(--jp-ui-font-color2, #586572)"


class Sentence(ipywidgets.HTML):  # type: ignore[misc]  # ipywidgets has no types
    """Text that wraps (a ``Label`` truncates it), with any HTML in it escaped."""

    def __init__(self, text: str = "", *, error: bool = False, margin: str = "0") -> None:
        self._error = error
        self._text = ""
        super().__init__(layout=ipywidgets.Layout(margin=margin, max_width="34rem"))
        if error:
            self.add_class("carrel-wrong")
        self.show(text)

    @property
    def text(self) -> str:
        return self._text

    def show(self, sentence: str) -> None:
        self._text = sentence
        role, colour = ("alert", _ERROR_COLOUR) if self._error else ("note", _NOTE_COLOUR)
        style = f"color: {colour}; line-height: 1.4; font-size: 0.93em"
        self.value = f'<div role="{role}" style="{style}">{escape(sentence)}</div>'
        self.layout.display = "" if sentence else "none"


class UnitField(ipywidgets.HBox):  # type: ignore[misc]  # ipywidgets has no types
    """A number and its unit; a text with a unit of its own, such as ``1h30m``, counts as it is."""

    def __init__(self, text: str, unit: str, units: Mapping[str, str], **options: str) -> None:
        self.number = ipywidgets.Text(text, **options, style=_WIDE)
        self.number.layout = ipywidgets.Layout(flex="1 1 auto", width="auto")
        self.unit = ipywidgets.Dropdown(options=units, value=unit)
        self.unit.layout = ipywidgets.Layout(width="7rem")
        self.unit.tooltip = f"Unit of: {options['description']}"
        super().__init__([self.number, self.unit])

    @property
    def value(self) -> str:
        """Return the number with its unit: ``2h``, ``1.5GiB``."""
        text = str(self.number.value).strip().replace(",", ".")
        if not text.replace(".", "", 1).isdecimal():
            return text
        seconds = _UNIT_SECONDS.get(self.unit.value)
        return f"{text}{self.unit.value}" if seconds is None else f"{round(float(text) * seconds)}s"


class FieldRow(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A field with its help text, and below it the error of its entry."""

    def __init__(self, field: ipywidgets.DOMWidget, note: str = "") -> None:
        self.field = field
        field.layout = _FILL
        if not isinstance(field, UnitField):
            field.style = _WIDE
        if note:
            field.tooltip = note
        self.note = Sentence(note, margin=_FIELD_MARGIN)
        self._error = Sentence(error=True, margin=_FIELD_MARGIN)
        super().__init__([field, self.note, self._error])

    @property
    def value(self) -> object:
        return self.field.value

    @property
    def error(self) -> str:
        return self._error.text

    @error.setter
    def error(self, sentence: str) -> None:
        self._error.show(sentence)


class SubmitForm(ipywidgets.VBox):  # type: ignore[misc]  # as above
    """Submit a notebook as a job.

    >>> carrel.SubmitForm("digits.ipynb")

    Args:
        notebook: its path (optional; otherwise a field of the form).
        client: for another site than that of this session.
    """

    def __init__(self, notebook: str | Path | None = None, *, client: Client | None = None) -> None:
        self._client = client or Client.from_environment()
        self.job: RequestOut | None = None
        """The job that was submitted last."""
        self._notebook: NotebookIn | None = None
        self._fields: dict[str, ParameterField] = {}
        self._parameters: dict[str, FieldRow] = {}
        self.rows = self._resource_rows()
        """The rows below the parameters, by the field of the job that each one sets."""
        self._path = FieldRow(_path_field(notebook))
        self._parameter_box = ipywidgets.VBox([])
        self._size = Sentence(margin="auto 0.5rem")
        self._send = ipywidgets.Button(description="Submit", button_style="primary")
        self._problem = Sentence(error=True, margin=_FIELD_MARGIN)
        self._views = ipywidgets.VBox([])
        self._path.field.observe(lambda _change: self._read(), "value")
        self._send.on_click(lambda _button: self.submit())
        actions = ipywidgets.HBox(
            [self._send, self._size], layout=ipywidgets.Layout(margin="0.3rem 0 0.3rem 9.4rem")
        )
        super().__init__(
            [
                self._path,
                self._parameter_box,
                *self.rows.values(),
                actions,
                self._problem,
                self._views,
            ]
        )
        if self._path.value:
            self._read()

    def submit(self) -> RequestOut | None:
        """Submit the job, as the button does; return None if it was refused, with errors in the
        form.
        """
        self._clear()
        try:
            shown = self._fields
            self._read()
            if self._fields != shown:
                self._path.error = "The notebook's parameters have changed: check them again."
                return None
            body = self._body()
            if body is None:
                return None
            job = self._client.submit(body)
        except CarrelError as error:
            self._refused(error)
            return None
        self.job = job
        self._views.children = (JobView(job, client=self._client), *self._views.children)
        return job

    # -- the notebook ---------------------------------------------------------------------

    def _read(self) -> None:
        """Read the notebook again, and rebuild its fields if its parameters have changed."""
        self._clear()
        path = Path(str(self._path.value).strip()).expanduser()
        try:
            notebook = parsers.notebook(path)
            checked = check_notebook(notebook.name, notebook.content)
        except CarrelError as error:
            self._notebook, self._path.error = None, str(error)
            self._size.show("")
            return
        self._notebook = notebook
        repairs = f". Repaired: {' '.join(checked.repairs)}" if checked.repairs else ""
        self._size.show(f"{path.name}, {_size(len(notebook.content.encode()))}{repairs}")
        fields = {field.name: field for field in checked.fields or ()}
        if fields != self._fields or not self._parameter_box.children:
            self._fields = fields
            self._parameters = {name: _parameter_row(each) for name, each in fields.items()}
            none = Sentence("This notebook has no cell tagged “parameters”.", margin=_FIELD_MARGIN)
            self._parameter_box.children = tuple(self._parameters.values()) or (none,)

    def _resource_rows(self) -> dict[str, FieldRow]:
        groups, problem = self._groups()
        names = [group.name for group in groups]
        rows = {
            "group": FieldRow(
                ipywidgets.Dropdown(options=names, description="Group"), _limits(groups, names[:1])
            ),
            "devices": FieldRow(
                ipywidgets.BoundedIntText(value=0, min=0, max=1024, description="Devices"),
                "Whole devices (GPUs); 0 for a job on CPU.",
            ),
            "seconds": FieldRow(UnitField("1", "h", _TIME_UNITS, description="Time limit")),
            "memory_bytes": FieldRow(
                UnitField("", "GiB", _SIZE_UNITS, description="Memory", placeholder="any")
            ),
            "labels": FieldRow(
                ipywidgets.Text("", placeholder="none", description="Labels"),
                "KEY=VALUE, separated by commas.",
            ),
            "internet": FieldRow(
                ipywidgets.Checkbox(True, description="Internet", indent=True),
                "Without it the job can reach only this site's service.",
            ),
        }
        if models := self._models(groups):
            choices = [("any", None), *((model, model) for model in models)]
            rows["model"] = FieldRow(ipywidgets.Dropdown(options=choices, description="Model"))
        group = rows["group"]
        group.error = problem
        group.field.observe(
            lambda change: group.note.show(_limits(groups, [change["new"]])), "value"
        )
        return rows

    def _groups(self) -> tuple[list[GroupOut], str]:
        try:
            groups = self._client.groups()
        except CarrelError as error:
            return [], str(error)
        return groups, "" if groups else "You are not in a group that may run jobs."

    def _models(self, groups: list[GroupOut]) -> list[str]:
        """Return the models to choose from; empty without a choice, or if the pool is unknown."""
        try:
            devices = self._client.pool().devices
        except CarrelError:
            return []
        return job_builder.model_choices((group.models for group in groups), devices)

    # -- submitting -----------------------------------------------------------------------

    def _body(self) -> JobIn | None:
        """Return the job; None if an entry is invalid, with the error beside it."""
        entries: dict[str, object] = {}
        readers: dict[str, Callable[[str], object]] = {
            "seconds": parsers.seconds,
            "memory_bytes": lambda text: parsers.memory_bytes(text) if text else 0,
            "labels": _labels,
        }
        for name, read in readers.items():
            try:
                entries[name] = read(str(self.rows[name].value).strip())
            except CarrelError as error:
                self.rows[name].error = str(error)
        parameters = self._parameter_values()
        if self._notebook is None or len(entries) < len(readers) or parameters is None:
            return None
        resources = {name: self.rows[name].value for name in ("devices", "internet")}
        if (model := self.rows.get("model")) is not None and model.value is not None:
            resources["model"] = model.value
        group = str(self.rows["group"].value or "")
        what = {"group": group, "notebook": self._notebook, "parameters": parameters}
        return job_builder.job(entries | resources | what, maker="form")

    def _parameter_values(self) -> dict[str, JsonValue] | None:
        values: dict[str, JsonValue] = {}
        complete = True
        for name, row in self._parameters.items():
            field = self._fields[name]
            entry = str(row.value).lower() if isinstance(row.value, bool) else str(row.value)
            if entry == field.shown or (not entry and not field.shown):
                continue  # unchanged from the notebook
            try:
                values[name] = field.read(entry)
            except CarrelError as error:
                row.error, complete = str(error), False
        return values if complete else None

    def _refused(self, error: CarrelError) -> None:
        """Show the error beside its field, or below the form."""
        field = error.field or ("group" if isinstance(error, NotAMember) else "")
        name = field.removeprefix("parameters.").removeprefix("parameter-")
        row = self._parameters.get(name) or self.rows.get(field)
        if field in ("notebook", "path"):
            row = self._path
        if row is None:
            self._problem.show(str(error))
        else:
            row.error = str(error)

    def _clear(self) -> None:
        self._problem.show("")
        for row in (self._path, *self.rows.values(), *self._parameters.values()):
            row.error = ""


def _path_field(notebook: str | Path | None) -> ipywidgets.DOMWidget:
    if notebook is not None:
        return ipywidgets.Text(str(notebook), description="Notebook", continuous_update=False)
    here = sorted(str(path) for path in Path().glob("*.ipynb"))
    return ipywidgets.Combobox(
        options=here,
        description="Notebook",
        placeholder="path of a notebook",
        continuous_update=False,
    )


def _parameter_row(field: ParameterField) -> FieldRow:
    """Return a field of the parameter's type; an empty one keeps the notebook's value."""
    named = {"description": field.name}
    help_text = field.help or f"{field.type.value[:1].upper()}{field.type.value[1:]}."
    if field.shown:
        match field.type:
            case FieldType.WHOLE:
                return FieldRow(ipywidgets.IntText(int(field.shown), **named), help_text)
            case FieldType.NUMBER:
                return FieldRow(ipywidgets.FloatText(float(field.shown), **named), help_text)
            case FieldType.YES_NO:
                return FieldRow(
                    ipywidgets.Checkbox(field.shown == "true", indent=True, **named), help_text
                )
            case _:
                pass
    empty = field.default if not field.shown else ""
    return FieldRow(ipywidgets.Text(field.shown, placeholder=empty, **named), help_text)


def _labels(text: str) -> dict[str, str]:
    return dict(parsers.label(part.strip()) for part in text.split(",") if part.strip())


def _limits(groups: list[GroupOut], names: list[str]) -> str:
    for group in groups:
        if group.name in names:
            most = units.devices(most_devices(group))
            return f"At most {most} and {units.duration(group.max_seconds)} for each job."
    return ""


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:  # noqa: PLR2004  # one KiB
        return f"{size_bytes} bytes"
    kib = size_bytes / 1024
    return f"{kib:,.0f} KiB" if kib < 1024 else f"{kib / 1024:,.1f} MiB"  # noqa: PLR2004
