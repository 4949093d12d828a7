"""The paths by which JupyterLab's panel and commands read and act.

Each is one operation: a function of the session and a checked body, which runs in a thread. It
answers with JSON, or with the sentence of an error and the field that caused it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from pydantic import BaseModel, ValidationError
from tornado import web

from ...hub.errors import CarrelError
from ...hub.messages.validation import invalid_body
from ...hub.schemas import In
from ..environment import PANEL_PATH
from . import coursework, desk_summary, job_output, job_submission
from .session_place import NothingIn, PathIn, SessionPlace

Operation = Callable[[SessionPlace, Any], BaseModel | None]


@dataclass(frozen=True, slots=True)
class PanelOperation:
    """An operation with the model of its body."""

    run: Operation
    body: type[In]


class _PanelHandler(APIHandler):
    def initialize(self, operation: PanelOperation, place: SessionPlace) -> None:
        self.operation = operation
        self.place = place

    async def answer(self, given: object) -> None:
        self.set_header("Cache-Control", "no-store")
        try:
            body = self.operation.body.model_validate(given)
            found = await asyncio.to_thread(self.operation.run, self.place, body)
        except ValidationError as error:
            self._refuse(invalid_body(error, self.operation.body))
        except CarrelError as error:
            self._refuse(error)
        else:
            self.finish(found.model_dump_json() if found is not None else "{}")

    def _refuse(self, error: CarrelError) -> None:
        self.set_status(error.http_status)
        # JupyterLab takes 401 for the end of its own sign-in.
        if error.http_status == HTTPStatus.UNAUTHORIZED:
            self.set_status(HTTPStatus.FORBIDDEN)
        self.finish(json.dumps({"message": str(error), "field": error.field}))


class PanelReadHandler(_PanelHandler):
    """Answers what the panel shows; reading is no activity of the user."""

    _track_activity = False

    @web.authenticated
    async def get(self) -> None:
        # JupyterLab adds the time to every address, so that no answer is cached.
        known = self.operation.body.model_fields.keys() & self.request.arguments.keys()
        await self.answer({name: self.get_query_argument(name) for name in known})


class PanelActionHandler(_PanelHandler):
    """Does what a button or command asks for."""

    @web.authenticated
    async def post(self) -> None:
        await self.answer(self.get_json_body() or {})


READS = {
    "desk": PanelOperation(desk_summary.summary, NothingIn),
    "courses": PanelOperation(coursework.overview, NothingIn),
    "assignment-of": PanelOperation(coursework.assignment_of, PathIn),
    "last-check": PanelOperation(coursework.last_check, coursework.AssignmentIn),
    "job-form": PanelOperation(job_submission.form, PathIn),
}
ACTIONS = {
    "extend": PanelOperation(desk_summary.extend, desk_summary.ExtensionOfSessionIn),
    "stop": PanelOperation(desk_summary.stop, NothingIn),
    "submit": PanelOperation(job_submission.submit, job_submission.NotebookJobIn),
    "fetch": PanelOperation(coursework.fetch, coursework.FetchIn),
    "check": PanelOperation(coursework.check, PathIn),
    "hand-in": PanelOperation(coursework.hand_in, coursework.HandInIn),
    "copy-output": PanelOperation(job_output.copy_into_home, job_output.CopyIn),
}


def panel_routes(
    root: Path, request_id: str
) -> Iterator[tuple[str, type[APIHandler], dict[str, object]]]:
    """Yield the paths, handlers and arguments of all operations."""
    place = SessionPlace(root=root, request_id=request_id)
    for handler, operations in ((PanelReadHandler, READS), (PanelActionHandler, ACTIONS)):
        for name, operation in operations.items():
            path = url_path_join(PANEL_PATH, name)
            yield path, handler, {"operation": operation, "place": place}
