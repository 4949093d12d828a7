"""The three live views. Python sets their traits, the files in ``static`` show them."""

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
from ...hub.errors import CarrelError, InvalidInput
from ...hub.schemas.explanation import WhyOut
from .job_state import JobViewState
from .pool_state import PoolViewState, why_facts
from .stream_feeds import FEEDS, HEART, FedState, Snapshot, StreamFeed

_STATIC = Path(__file__).parent / "static"


class HasId(Protocol):
    """Whatever stands for a request: a ``carrel.Job``, a request of the client."""

    @property
    def id(self) -> str: ...


def _script(name: str) -> str:
    """A widget's script is one module: what the views share stands in front of it."""
    return (_STATIC / "shared.js").read_text() + (_STATIC / name).read_text()


class _Live(anywidget.AnyWidget):
    """A view that is fed, and whose heart beats as long as its kernel lives."""

    _css = _STATIC / "carrel.css"

    beat = traitlets.Int(0).tag(sync=True)
    service = traitlets.Unicode("").tag(sync=True)
    """Where the links lead."""
    problem = traitlets.Unicode("").tag(sync=True)
    away = traitlets.Bool(False).tag(sync=True)

    _feed: StreamFeed | None = None

    def _begin(self, client: Client, key: str, story: Callable[[Client], FedState]) -> None:
        self.service = service_link(public_site(client.site).service)
        self._feed = FEEDS.of(f"{client.site.base} {key}", lambda: story(client))
        self._feed.listen(self._heard)
        HEART.add(self._beat)

    def close(self) -> None:
        """End this view; a frontend shows nothing of it any more."""
        HEART.remove(self._beat)
        if self._feed is not None:
            self._feed.leave(self._heard)
        super().close()

    def _beat(self) -> None:
        self.beat += 1

    def _heard(self, told: Snapshot) -> None:
        with self.hold_sync():
            for name, value in told.items():
                if self.has_trait(name):
                    self.set_trait(name, value)


class _Explaining(_Live):
    """A view that says on demand why a request waits and what would help.

    Working it out costs the service more than a row of the queue: only somebody who opens it asks.
    """

    why = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    """Of the request that was asked about last."""

    _client: Client

    def ask_why(self, request_id: str) -> None:
        if request_id:
            name = "carrel-why"
            threading.Thread(target=self._ask, args=(request_id,), name=name, daemon=True).start()

    def _ask(self, request_id: str) -> None:
        try:
            self.why = why_facts(self._client.why(request_id), time.time())
        except CarrelError as error:
            self.why = why_facts(WhyOut(request_id=request_id, sentences=[str(error)]), time.time())


class JobView(_Explaining):
    """A job, live: its cells, its place in the queue or its devices, its log, its end.

    >>> carrel.JobView(job)

    Args:
        job: a ``carrel.Job`` (anything with an ``id``), or the id of a request.
        client: for another site than that of this session.
    """

    _esm = _script("job.js")

    job = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    cells: traitlets.List[dict[str, JsonValue]] = traitlets.List().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    log = traitlets.Unicode("").tag(sync=True)
    asked = traitlets.Bool(False).tag(sync=True)
    """Whether it was asked to end from here."""
    refused = traitlets.Unicode("").tag(sync=True)
    """Why it was not: ``problem`` is the feed's, and each of its news says it anew."""

    def __init__(self, job: HasId | str, *, client: Client | None = None) -> None:
        request_id = job if isinstance(job, str) else job.id
        if not request_id:
            raise InvalidInput("A view needs a job.", accepted="A job, or its id (see carrel ps).")
        super().__init__()
        self.request_id = request_id
        self._client = client or Client.from_environment()
        self.on_msg(self._told)
        self._begin(self._client, request_id, lambda own: JobViewState(own, request_id))

    def cancel(self) -> None:
        """Ask the job to end; the view follows how it does."""
        self.refused, self.asked = "", True
        threading.Thread(target=self._cancel, name="carrel-cancel", daemon=True).start()

    def _cancel(self) -> None:
        try:
            self._client.cancel(self.request_id)
        except CarrelError as error:
            self.refused, self.asked = str(error), False

    def _told(self, _widget: object, content: dict[str, JsonValue], _buffers: object) -> None:
        match content.get("do"):
            case "cancel":
                self.cancel()
            case "why":
                self.ask_why(self.request_id)


class QueueView(_Explaining):
    """The queue with its reasons; who and what only as far as the reader may know."""

    _esm = _script("queue.js")

    queue = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(self, *, client: Client | None = None) -> None:
        super().__init__()
        self._client = client or Client.from_environment()
        self.on_msg(self._told)
        self._begin(self._client, "site", PoolViewState)

    def _told(self, _widget: object, content: dict[str, JsonValue], _buffers: object) -> None:
        if content.get("do") == "why":
            self.ask_why(str(content.get("request_id") or ""))


class PoolView(_Live):
    """Every device as a tile: free, yours, taken, busy, sick or gone."""

    _esm = _script("pool.js")

    pool = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(self, *, client: Client | None = None) -> None:
        super().__init__()
        self._begin(client or Client.from_environment(), "site", PoolViewState)


def service_link(service: str) -> str:
    """Inside a session the service lies on the browser's own host, whatever it calls it."""
    inside = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
    return (urlsplit(service).path if inside else service).rstrip("/") + "/"
