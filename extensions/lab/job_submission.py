"""Submit a notebook of the session as a job: its form, and the job that outlives the session."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...hub.attempts.snapshots import continuation_folder
from ...hub.client import job_builder
from ...hub.messages.units import devices as devices_text
from ...hub.messages.units import duration
from ...hub.schemas import GroupOut, In, Out, RequestOut, most_devices, parsers
from ...hub.schemas.requests import SAVED_STATE
from .. import job
from .session_place import PathIn, SessionPlace

CONTINUES = "continues"
"""Label of a job that continues a session; its value is the session."""


class FormGroupOut(Out):
    """A group to charge; ``limits`` are its limits in words."""

    name: str
    limits: str


class FormParameterOut(Out):
    """A parameter of the notebook; ``shown`` is its default as an entry of the form."""

    name: str
    type: str
    shown: str
    default: str
    help: str


class JobFormOut(Out):
    """What the form offers, and the values of this session as its first choices.

    ``parameters`` is null if they cannot be read. ``models`` is empty without a choice.
    """

    groups: list[FormGroupOut]
    group: str
    models: list[str]
    model: str | None
    session_devices: int
    parameters: list[FormParameterOut] | None
    repairs: list[str]


class NotebookJobIn(PathIn):
    """The job as the form has it.

    Attributes:
        parameters: entries by name.
        continues: label it with this session.
        state: name of the saved state from which it goes on; empty for the first cell.
    """

    group: Annotated[str, Field(max_length=64)]
    devices: Annotated[str, Field(max_length=40)]
    model: str | None = None
    time: Annotated[str, Field(max_length=100)]
    parameters: Annotated[dict[str, str], Field(default_factory=dict)]
    continues: bool = False
    state: Annotated[str, Field(pattern=SAVED_STATE)] = ""


class StateIn(In):
    """A saved state whose job was not submitted."""

    name: Annotated[str, Field(pattern=SAVED_STATE, min_length=1)]


class SubmittedOut(Out):
    """The new job, and what was repaired in its notebook."""

    id: str
    notes: list[str]


def form(place: SessionPlace, body: PathIn) -> JobFormOut:
    """Return the form for a saved notebook.

    Raises:
        InvalidInput, TooLarge: of the notebook.
    """
    from ...hub.admission.notebook import check_notebook  # noqa: PLC0415  # slow to import

    sent = parsers.notebook(place.notebook(body.path))
    checked = check_notebook(sent.name, sent.content)
    session = place.client.request(place.request_id)
    groups = place.client.groups()
    devices = place.client.pool().devices
    fields = checked.fields
    return JobFormOut(
        groups=[FormGroupOut(name=group.name, limits=_limits(group)) for group in groups],
        group=session.group,
        models=job_builder.model_choices((group.models for group in groups), devices),
        model=session.model,
        session_devices=session.devices,
        parameters=None
        if fields is None
        else [
            FormParameterOut(
                name=field.name,
                type=field.type.value,
                shown=field.shown,
                default=field.default,
                help=field.help,
            )
            for field in fields
        ],
        repairs=list(checked.repairs),
    )


def _limits(group: GroupOut) -> str:
    return f"At most {devices_text(most_devices(group))} and {duration(group.max_seconds)}."


def submit(place: SessionPlace, body: NotebookJobIn) -> SubmittedOut:
    """Submit a saved notebook, in the image of the session.

    Raises:
        CarrelError: an entry is invalid, with its field, or the service refuses the job.
    """
    from ...hub.admission.notebook import check_notebook  # noqa: PLC0415  # slow to import
    from ...hub.admission.parameters import changed_values  # noqa: PLC0415  # the same

    notebook = place.notebook(body.path)
    session: RequestOut = place.client.request(place.request_id)
    parameters = {}
    if body.parameters:
        sent = parsers.notebook(notebook)
        fields = check_notebook(sent.name, sent.content).fields or ()
        parameters = changed_values(fields, body.parameters)
    made = job.submit(
        notebook,
        parameters,
        devices=parsers.devices(body.devices),
        model=body.model,
        time=body.time,
        group=body.group or session.group,
        image=session.image,
        labels={CONTINUES: session.id} if body.continues else None,
        continuation=body.state,
    )
    return SubmittedOut(id=made.id, notes=made.request.notes)


def discard_state(place: SessionPlace, body: StateIn) -> None:
    """Delete a saved state that no job will use."""
    shutil.rmtree(continuation_folder(Path.home(), body.name), ignore_errors=True)
