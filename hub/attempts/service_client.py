"""The runner's side of the service: the claim, and the delivery of events.

The service may be away for a while (a restart, an update): then the runner keeps trying.
It may also say that the attempt is no longer the one to run: then the runner must stop.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from ..records.events import NewEvent
from ..records.json_value import Json
from .journal import as_json, say
from .spec import AttemptSpec

PATIENCE_SECONDS: Final = 2 * 3600.0
"""How long a claim is tried while the service is away."""

_TIMEOUT_SECONDS = 10.0
_FIRST_DELAY, _LAST_DELAY = 0.05, 1.0
_GATHER_SECONDS = 0.05
"""Events come in threes, between two cells: one post takes them all, and none hinders the work
while it starts the next cell."""
_TRY_AGAIN: Final = frozenset({408, 425, 429})
_FENCED: Final = frozenset({401, 403, 404, 409, 410})
_SERVER_ERROR = 500
_BATCH = 500
_BATCH_BYTES = 1 << 20
_LONGEST_DELAY = 30.0
"""The most that a service which is asked too much can make the runner wait."""


class Away(Exception):
    """The service does not respond, or asks to retry after ``seconds``."""

    def __init__(self, why: str, seconds: float = 0.0) -> None:
        super().__init__(why)
        self.seconds = seconds


class Fenced(Exception):
    """The service has fenced this attempt."""


class Rejected(Exception):
    """The service rejects a body as invalid."""


class AttemptClient:
    """Posts to the service as this attempt.

    The token is read from the order for every call: a backend that adopts a runner after a
    restart writes it a new one.
    """

    def __init__(self, folder: Path, *, timeout: float = _TIMEOUT_SECONDS) -> None:
        self._folder, self._timeout = folder, timeout
        # A proxy that the environment names is for the outside world.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def claim(self) -> None:
        """Ask for leave to execute, until the service answers.

        Raises:
            Fenced, Rejected: not this attempt.
            Away: the service was not there for ``PATIENCE_SECONDS``.
        """
        me = psutil.Process()
        self.patiently("started", {"pid": os.getpid(), "started_at": me.create_time()})

    def deliver(self, events: list[NewEvent]) -> None:
        """Raises Away, Fenced, Rejected."""
        self._ask("events", {"events": [as_json(event) for event in events]})

    def patiently(
        self,
        what: str,
        body: Mapping[str, Json] | None = None,
        *,
        seconds: float = PATIENCE_SECONDS,
    ) -> bytes:
        """Post to what the lease has, or get it where there is no body, until there is an answer.

        Raises:
            Fenced, Rejected: not this attempt.
            Away: the service was not there for so many seconds.
        """
        ends = time.monotonic() + seconds
        delay = _FIRST_DELAY
        while True:
            try:
                return self._ask(what, body)
            except Away as error:
                if time.monotonic() > ends:
                    raise
                if delay == _FIRST_DELAY:
                    say(f"waiting for the service ({error})")
                time.sleep(delay)
                delay = min(_LAST_DELAY, delay * 2)

    def _ask(self, what: str, body: Mapping[str, Json] | None) -> bytes:
        order = AttemptSpec.read(self._folder)
        try:
            return self._send(order, what, body)
        except Fenced:
            renewed = AttemptSpec.read(self._folder)
            if renewed.token == order.token:
                raise
            return self._send(renewed, what, body)

    def _send(self, order: AttemptSpec, what: str, body: Mapping[str, Json] | None) -> bytes:
        request = urllib.request.Request(  # noqa: S310  # the address is the service's, not a user's
            f"{order.service_url}/api/v1/leases/{order.lease_id}/{what}",
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"token {order.token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as error:
            raise _meaning(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Away(str(error) or type(error).__name__) from error


def _meaning(error: urllib.error.HTTPError) -> Exception:
    with error:
        try:
            text = f"{error.code}: {error.read(2000).decode(errors='replace')}"
        except (OSError, http.client.HTTPException):
            text = str(error.code)
    if error.code >= _SERVER_ERROR or error.code in _TRY_AGAIN:
        return Away(text, _retry_after(error))
    return Fenced(text) if error.code in _FENCED else Rejected(text)


def _retry_after(error: urllib.error.HTTPError) -> float:
    try:
        return min(_LONGEST_DELAY, max(0.0, float(error.headers.get("Retry-After", "0"))))
    except ValueError:
        return 0.0


class Delivery(threading.Thread):
    """Sends events in their order, in the background, for as long as it takes.

    What is not delivered when the runner ends stays in the journal, and the service reads it
    there. The queue is bounded as the journal is: the runner limits what it reports.
    """

    def __init__(
        self, service: AttemptClient, on_fenced: Callable[[], None], sync: Callable[[], None]
    ) -> None:
        super().__init__(name="delivery", daemon=True)
        self._service = service
        self._sync = sync
        self._on_fenced = on_fenced
        self._changed = threading.Condition()
        self._waiting: list[NewEvent] = []
        self._hurry = False
        self._over = False
        """Whether no further event will be sent."""

    def put(self, event: NewEvent) -> None:
        with self._changed:
            self._waiting.append(event)
            self._changed.notify_all()

    def finish(self, timeout: float) -> bool:
        """Give what is left up to ``timeout`` seconds; True once all is delivered."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or self._over, timeout)
            return not self._waiting

    def run(self) -> None:
        delay = _FIRST_DELAY
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                self._changed.wait_for(lambda: self._hurry, _GATHER_SECONDS)
                batch = _first(self._waiting)
            self._sync()
            try:
                self._service.deliver(batch)
            except Away as error:
                time.sleep(max(delay, error.seconds))
                delay = min(_LAST_DELAY, delay * 2)
            except Fenced as error:
                self._stop(f"the service has fenced this attempt off ({error})")
                return self._on_fenced()
            except Rejected as error:
                return self._stop(f"the service rejects the events ({error})")
            else:
                delay = _FIRST_DELAY
                with self._changed:
                    del self._waiting[: len(batch)]
                    self._changed.notify_all()

    def _stop(self, why: str) -> None:
        say(why)
        with self._changed:
            self._over = True
            self._changed.notify_all()


def _first(waiting: Sequence[NewEvent]) -> list[NewEvent]:
    """The next batch: not too many, and not too much; always one."""
    batch: list[NewEvent] = []
    size = 0
    for event in waiting[:_BATCH]:
        size += len(json.dumps(as_json(event)))
        if batch and size > _BATCH_BYTES:
            break
        batch.append(event)
    return batch
