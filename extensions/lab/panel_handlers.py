"""The paths by which JupyterLab's panel and commands read and act.

Each is one operation: a function of the session and a checked body, which runs in a thread. It
answers with JSON, or with the sentence of an error and the field that caused it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jupyter_core.paths import jupyter_data_dir
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from pydantic import BaseModel, ValidationError
from tornado import web

from ...hub.errors import CarrelError
from ...hub.messages.validation import invalid_body
from ...hub.schemas import In
from ..environment import PANEL_PATH
from ..materials.material_folder import OpenMaterialIn, opening
from . import announcements, coursework, desk_summary, job_output, job_submission
from .notebook_state import ConnectedKernel, NotebookStateOut, save_state
from .service_handler import ServiceHandler
from .session_place import NothingIn, PathIn, SessionPlace

Operation = Callable[[SessionPlace, Any], BaseModel | None]


@dataclass(frozen=True, slots=True)
class PanelOperation:
    """An operation with the model of its body."""

    run: Operation
    body: type[In]


class _PanelHandler(ServiceHandler):
    def initialize(self, operation: PanelOperation, place: SessionPlace) -> None:
        self.operation = operation
        self.body = operation.body
        self.place = place

    async def perform(self, body: Any) -> BaseModel | None:
        return await asyncio.to_thread(self.operation.run, self.place, body)

    async def answer(self, given: object) -> None:
        self.set_header("Cache-Control", "no-store")
        try:
            found = await self.perform(self.body.model_validate(given))
        except ValidationError as error:
            self.refuse(invalid_body(error, self.body))
        except CarrelError as error:
            self.refuse(error)
        else:
            self.finish(found.model_dump_json() if found is not None else "{}")


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


class NotebookStateHandler(PanelActionHandler):
    """Saves the state of a notebook for a job; it runs in the event loop of the kernels."""

    def initialize(self, place: SessionPlace) -> None:  # type: ignore[override]  # by the route
        self.body = PathIn
        self.place = place

    async def perform(self, body: PathIn) -> NotebookStateOut:
        notebook = await asyncio.to_thread(self.place.notebook, body.path)
        return await save_state(notebook, await self._kernel_of(body.path), Path.home())

    async def _kernel_of(self, path: str) -> ConnectedKernel | None:
        """Return the kernel of the notebook at a path."""
        for session in await self.session_manager.list_sessions():  # type: ignore[no-untyped-call]
            if session["path"] == path and session["kernel"] is not None:
                kernel = self.kernel_manager.get_kernel(session["kernel"]["id"])
                return cast("ConnectedKernel", kernel)
        return None


READS = {
    "desk": PanelOperation(desk_summary.summary, NothingIn),
    "courses": PanelOperation(coursework.overview, NothingIn),
    "assignment-of": PanelOperation(coursework.assignment_of, PathIn),
    "last-check": PanelOperation(coursework.last_check, coursework.AssignmentIn),
    "official-checks": PanelOperation(coursework.official_checks, coursework.AssignmentIn),
    "job-form": PanelOperation(job_submission.form, PathIn),
    "announcements": PanelOperation(announcements.current, NothingIn),
}
ACTIONS = {
    "extend": PanelOperation(desk_summary.extend, desk_summary.ExtensionOfSessionIn),
    "stop": PanelOperation(desk_summary.stop, NothingIn),
    "submit": PanelOperation(job_submission.submit, job_submission.NotebookJobIn),
    "discard-state": PanelOperation(job_submission.discard_state, job_submission.StateIn),
    "fetch": PanelOperation(coursework.fetch, coursework.FetchIn),
    "check": PanelOperation(coursework.check, PathIn),
    "official-check": PanelOperation(coursework.official_check, PathIn),
    "hand-in": PanelOperation(coursework.hand_in, coursework.HandInIn),
    "close-announcement": PanelOperation(announcements.close, announcements.AnnouncementIdIn),
    "copy-output": PanelOperation(job_output.copy_into_home, job_output.CopyIn),
    "open-material": PanelOperation(opening(Path(jupyter_data_dir())), OpenMaterialIn),
}


def panel_routes(
    root: Path, request_id: str
) -> Iterator[tuple[str, type[APIHandler], dict[str, object]]]:
    """Yield the paths, handlers and arguments of all operations."""
    place = SessionPlace(root=root, request_id=request_id)
    yield url_path_join(PANEL_PATH, "save-state"), NotebookStateHandler, {"place": place}
    for handler, operations in ((PanelReadHandler, READS), (PanelActionHandler, ACTIONS)):
        for name, operation in operations.items():
            path = url_path_join(PANEL_PATH, name)
            yield path, handler, {"operation": operation, "place": place}
