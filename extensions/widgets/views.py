"""The three live views: Python sets their traits, the files in ``static`` render them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import anywidget
import traitlets
from pydantic import JsonValue

from ...hub.client import Client, public_site
from ...hub.errors import CarrelError, InvalidInput, NotFound
from ...hub.schemas.explanation import WhyOut
from .job_state import JobViewState
from .pool_state import PoolViewState, why_facts
from .stream_feeds import FEEDS, HEARTBEAT, FedState, Snapshot, StreamFeed

_STATIC = Path(__file__).parent / "static"


class HasId(Protocol):
    """Anything with a request's id: a ``carrel.Job``, a request of the client."""

    @property
    def id(self) -> str: ...


def view_script(*names: str) -> str:
    """Return a widget's script: one module, with the views' shared code in front."""
    return "".join((_STATIC / name).read_text() for name in ("shared.js", *names))


class _LiveView(anywidget.AnyWidget):
    """A view with a feed, and a heartbeat as long as its kernel lives."""

    _css = _STATIC / "carrel.css"

    heartbeat = traitlets.Int(0).tag(sync=True)
    service = traitlets.Unicode("").tag(sync=True)
    """Base URL of links."""
    problem = traitlets.Unicode("").tag(sync=True)
    away = traitlets.Bool(False).tag(sync=True)

    _feed: StreamFeed | None = None

    def _start_feed(
        self, client: Client, key: str, make_state: Callable[[Client], FedState]
    ) -> None:
        self.service = service_link(public_site(client.site).service)
        self._feed = FEEDS.of(f"{client.site.base} {key}", lambda: make_state(client))
        self._feed.listen(self._apply)
        HEARTBEAT.add(self._send_heartbeat)

    def close(self) -> None:
        """Close this view; frontends no longer show it."""
        HEARTBEAT.remove(self._send_heartbeat)
        if self._feed is not None:
            self._feed.leave(self._apply)
        super().close()

    def _send_heartbeat(self) -> None:
        self.heartbeat += 1

    def _apply(self, snapshot: Snapshot) -> None:
        with self.hold_sync():
            for name, value in snapshot.items():
                if self.has_trait(name):
                    self.set_trait(name, value)


class _ExplainingView(_LiveView):
    """A view that explains on demand why a request is queued and what would help.

    An explanation costs the service more than a row of the queue: only opening it fetches it.
    """

    why = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    """The explanation that was requested last."""

    _client: Client

    def ask_why(self, request_id: str) -> None:
        if request_id:
            name = "carrel-why"
            threading.Thread(
                target=self._fetch_why, args=(request_id,), name=name, daemon=True
            ).start()

    def _fetch_why(self, request_id: str) -> None:
        try:
            self.why = why_facts(self._client.why(request_id), time.time())
        except CarrelError as error:
            self.why = why_facts(WhyOut(request_id=request_id, sentences=[str(error)]), time.time())


class JobView(_ExplainingView):
    """A live view of a job: cells, queue position or devices, reported values, log and end.

    >>> carrel.JobView(job)

    Args:
        job: a ``carrel.Job`` (anything with an ``id``), or the id of a request; by default your
            newest job.
        client: for another site than that of this session.

    Raises:
        InvalidInput: the id is empty.
        NotFound: you have no jobs yet.
    """

    _esm = view_script("plots.js", "job_parts.js", "job.js")

    job = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    cells: traitlets.List[dict[str, JsonValue]] = traitlets.List().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    log = traitlets.Unicode("").tag(sync=True)
    reports: traitlets.List[dict[str, JsonValue]] = traitlets.List().tag(sync=True)
    compilations: traitlets.List[dict[str, JsonValue]] = traitlets.List().tag(sync=True)
    asked = traitlets.Bool(False).tag(sync=True)
    """Whether this view has cancelled the job."""
    refused = traitlets.Unicode("").tag(sync=True)
    """Why cancelling failed. (The feed overwrites ``problem`` at each change.)"""

    def __init__(self, job: HasId | str | None = None, *, client: Client | None = None) -> None:
        client = client or Client.from_environment()
        job = self._newest(client) if job is None else job
        request_id = job if isinstance(job, str) else job.id
        if not request_id:
            raise InvalidInput(
                "The id of the job is empty.",
                accepted="Pass a job, its id (see carrel ps), or nothing for your newest job.",
            )
        super().__init__()
        self.request_id = request_id
        self._client = client
        self.on_msg(self._handle_message)
        self._start_feed(self._client, f"{type(self).__name__} {request_id}", self._state_of)

    def cancel(self) -> None:
        """Cancel the job; the view shows how it ends."""
        self.refused, self.asked = "", True
        threading.Thread(target=self._cancel, name="carrel-cancel", daemon=True).start()

    def _state_of(self, client: Client) -> FedState:
        return JobViewState(client, self.request_id)

    @staticmethod
    def _newest(client: Client) -> HasId:
        newest = client.requests(kind="job", limit=1)
        if not newest:
            raise NotFound(
                "You have no jobs yet.",
                accepted="Submit one with carrel.submit() or carrel.SubmitForm().",
            )
        return newest[0]

    def _cancel(self) -> None:
        try:
            self._client.cancel(self.request_id)
        except CarrelError as error:
            self.refused, self.asked = str(error), False

    def _handle_message(
        self, _widget: object, content: dict[str, JsonValue], _buffers: object
    ) -> None:
        match content.get("do"):
            case "cancel":
                self.cancel()
            case "why":
                self.ask_why(self.request_id)


class QueueView(_ExplainingView):
    """The queue with its reasons; owners and titles as far as the user may see them."""

    _esm = view_script("queue.js")

    queue = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(self, *, client: Client | None = None) -> None:
        super().__init__()
        self._client = client or Client.from_environment()
        self.on_msg(self._handle_message)
        self._start_feed(self._client, "site", PoolViewState)

    def _handle_message(
        self, _widget: object, content: dict[str, JsonValue], _buffers: object
    ) -> None:
        if content.get("do") == "why":
            self.ask_why(str(content.get("request_id") or ""))


class PoolView(_LiveView):
    """Every device as a tile: free, yours, taken, busy, sick or gone."""

    _esm = view_script("pool.js")

    pool = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(self, *, client: Client | None = None) -> None:
        super().__init__()
        self._start_feed(client or Client.from_environment(), "site", PoolViewState)


def service_link(service: str) -> str:
    """Return the service's base URL; inside a session its path, on the browser's host."""
    in_session = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
    return (urlsplit(service).path if in_session else service).rstrip("/") + "/"
