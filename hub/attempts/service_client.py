"""The runner's client of the service: it claims the attempt and delivers events.

While the service is away, for example during a restart, calls are retried. If the service fences
the attempt, because another one has replaced it, the runner must stop.
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
from .journal import as_json, log_line
from .spec import AttemptSpec

PATIENCE_SECONDS: Final = 2 * 3600.0
"""How long a call is retried while the service is away."""

_TIMEOUT_SECONDS = 10.0
_FIRST_DELAY, _LAST_DELAY = 0.05, 1.0
_GATHER_SECONDS = 0.05
"""How long to wait for more events before a delivery.

Three events come between two cells. One call delivers all of them, and it does not delay the start
of the next cell.
"""
_RETRIED: Final = frozenset({408, 425, 429})
_FENCED: Final = frozenset({401, 403, 404, 409, 410})
_SERVER_ERROR = 500
_BATCH = 500
_BATCH_BYTES = 1 << 20
_LONGEST_DELAY = 30.0
"""Upper bound of the delay that an overloaded service can request (``Retry-After``)."""


class Away(Exception):
    """The service does not answer, or requests a retry after ``seconds``."""

    def __init__(self, why: str, seconds: float = 0.0) -> None:
        super().__init__(why)
        self.seconds = seconds


class Fenced(Exception):
    """The service has fenced this attempt: another one has replaced it."""


class Rejected(Exception):
    """The service has rejected a body as invalid."""


class AttemptClient:
    """Calls the service with the token of this attempt.

    Every call reads the token from the order again, because a backend that adopts the runner after
    a restart writes a new one.
    """

    def __init__(self, folder: Path, *, timeout: float = _TIMEOUT_SECONDS) -> None:
        self._folder, self._timeout = folder, timeout
        # The proxy of the environment is for the internet, not for the service.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def claim(self) -> None:
        """Claim the attempt for this process; a runner may execute only after that.

        Raises:
            Fenced, Rejected: the service refused the claim.
            Away: the service did not answer for ``PATIENCE_SECONDS``.
        """
        process = psutil.Process()
        self.call_until_answered(
            "started", {"pid": os.getpid(), "started_at": process.create_time()}
        )

    def deliver(self, events: list[NewEvent]) -> None:
        """Deliver events in one call. Raises Away, Fenced, Rejected."""
        self._call("events", {"events": [as_json(event) for event in events]})

    def call_until_answered(
        self,
        resource: str,
        body: Mapping[str, Json] | None = None,
        *,
        seconds: float = PATIENCE_SECONDS,
    ) -> bytes:
        """Call a resource of the lease and retry while the service is away; return the answer.

        Args:
            resource: the last part of the URL, such as ``started``.
            body: sent with POST; without a body the resource is read with GET.
            seconds: how long to retry.

        Raises:
            Fenced, Rejected: the service refused the call.
            Away: the service did not answer for ``seconds``.
        """
        ends = time.monotonic() + seconds
        delay = _FIRST_DELAY
        while True:
            try:
                return self._call(resource, body)
            except Away as error:
                if time.monotonic() > ends:
                    raise
                if delay == _FIRST_DELAY:
                    log_line(f"waiting for the service ({error})")
                time.sleep(max(delay, error.seconds))
                delay = min(_LAST_DELAY, delay * 2)

    def _call(self, resource: str, body: Mapping[str, Json] | None) -> bytes:
        order = AttemptSpec.read(self._folder)
        try:
            return self._send(order, resource, body)
        except Fenced:
            # The backend may have written a new token between reading it and sending it.
            renewed = AttemptSpec.read(self._folder)
            if renewed.token == order.token:
                raise
            return self._send(renewed, resource, body)

    def _send(self, order: AttemptSpec, resource: str, body: Mapping[str, Json] | None) -> bytes:
        request = urllib.request.Request(  # noqa: S310  # the address is the service's, not a user's
            f"{order.service_url}/api/v1/leases/{order.lease_id}/{resource}",
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
            raise _exception_of(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Away(str(error) or type(error).__name__) from error


def _exception_of(error: urllib.error.HTTPError) -> Exception:
    """Return the exception for an HTTP error: Away, Fenced or Rejected."""
    with error:
        try:
            text = f"{error.code}: {error.read(2000).decode(errors='replace')}"
        except (OSError, http.client.HTTPException):
            text = str(error.code)
    if error.code >= _SERVER_ERROR or error.code in _RETRIED:
        return Away(text, _retry_after(error))
    return Fenced(text) if error.code in _FENCED else Rejected(text)


def _retry_after(error: urllib.error.HTTPError) -> float:
    try:
        return min(_LONGEST_DELAY, max(0.0, float(error.headers.get("Retry-After", "0"))))
    except ValueError:
        return 0.0


class Delivery(threading.Thread):
    """Delivers events in order, in a background thread, and retries without limit.

    The service reads events that are not delivered when the runner ends from the journal. The queue
    is bounded like the journal, because the runner limits the events that it reports.
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
        self._finishing = False
        """Whether to deliver at once, without waiting for more events."""
        self._stopped = False
        """Whether no further event will be sent."""

    def put(self, event: NewEvent) -> None:
        """Add an event to the queue."""
        with self._changed:
            self._waiting.append(event)
            self._changed.notify_all()

    def finish(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for the queue; return whether all events are delivered."""
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or self._stopped, timeout)
            return not self._waiting

    def run(self) -> None:
        delay = _FIRST_DELAY
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                self._changed.wait_for(lambda: self._finishing, _GATHER_SECONDS)
                batch = _next_batch(self._waiting)
            self._sync()
            try:
                self._service.deliver(batch)
            except Away as error:
                time.sleep(max(delay, error.seconds))
                delay = min(_LAST_DELAY, delay * 2)
            except Fenced as error:
                self._stop(f"the service has fenced this attempt ({error})")
                return self._on_fenced()
            except Rejected as error:
                return self._stop(f"the service has rejected the events ({error})")
            else:
                delay = _FIRST_DELAY
                with self._changed:
                    del self._waiting[: len(batch)]
                    self._changed.notify_all()

    def _stop(self, reason: str) -> None:
        log_line(reason)
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _next_batch(waiting: Sequence[NewEvent]) -> list[NewEvent]:
    """Return the next events to deliver, within the limits of a call; at least one."""
    batch: list[NewEvent] = []
    size = 0
    for event in waiting[:_BATCH]:
        size += len(json.dumps(as_json(event)))
        if batch and size > _BATCH_BYTES:
            break
        batch.append(event)
    return batch
