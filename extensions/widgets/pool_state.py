"""The state of pool and queue for the views, read again when the service reports a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pydantic import JsonValue

from ...hub.client import Client
from ...hub.errors import CarrelError, Unavailable
from ...hub.messages import units
from ...hub.messages.requests import device_state_meaning
from ...hub.messages.timed_text import (
    as_json,
    expected_start,
    expected_start_or_unknown,
    reservation,
    timed_reasons,
)
from ...hub.messages.units import count, memory
from ...hub.schemas import DeviceOut, PoolOut, QueueEntryOut, QueueOut
from ...hub.schemas.explanation import WhyOut
from .stream_feeds import Snapshot

RETRY_SECONDS = 2.0
MAX_ROWS = 200
"""Further rows are counted, not shown."""


class PoolViewState:
    """Pool and queue together: most changes affect both."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._snapshot: Snapshot = {"pool": None, "queue": None, "problem": "", "away": False}
        self._ended = threading.Event()

    def follow(self, changed: Callable[[], None]) -> None:
        while not self._ended.is_set():
            try:
                for _ in self._client.changes():
                    news: Snapshot = {
                        "pool": pool_facts(self._client.pool()),
                        "queue": queue_facts(self._client.queue()),
                        "problem": "",
                        "away": False,
                    }
                    with self._lock:
                        self._snapshot = news
                    changed()
            except Unavailable as error:
                self._report(error, away=True, changed=changed)
                self._ended.wait(RETRY_SECONDS)
            except CarrelError as error:
                self._report(error, away=False, changed=changed)
                self._ended.set()

    def snapshot(self) -> Snapshot:
        with self._lock:
            return dict(self._snapshot)

    def _report(self, error: CarrelError, *, away: bool, changed: Callable[[], None]) -> None:
        with self._lock:
            self._snapshot = {**self._snapshot, "problem": str(error), "away": away}
        changed()


def pool_facts(pool: PoolOut) -> dict[str, JsonValue]:
    waiting = f", {count(pool.waiting, 'request')} in the queue" if pool.waiting else ""
    return {
        "sentence": f"{pool.free} of {count(pool.total, 'device')} free{waiting}.",
        "tiles": [tile_facts(device) for device in pool.devices],
        "simulated": pool.simulated,
        "reserved": as_json([reservation(each) for each in pool.reservations]),
    }


def tile_facts(device: DeviceOut) -> dict[str, JsonValue]:
    """Describe a device as the desk does; with its owner only if the API returns one."""
    size = memory(device.memory_bytes)
    meaning = device.why or device_state_meaning(device.state)
    named = device.owner is not None and device.state == "taken"
    return {
        "id": device.id,
        "state": device.state,
        "model": device.model,
        "place": f"{device.node} #{device.index}" + (f" · {size}" if size else ""),
        "simulated": device.simulated,
        "meaning": f"{meaning}: {device.owner}" if named else meaning,
        "request_id": device.request_id,
    }


def queue_facts(queue: QueueOut) -> dict[str, JsonValue]:
    rows = queue.queue
    mine = [row.place for row in rows if row.yours]
    sentence = f"{count(len(rows), 'request')} in the queue." if rows else "The queue is empty."
    if mine:
        sentence += f" Your best position is {min(mine)}."
    now = time.time()
    return {
        "sentence": sentence,
        "rows": [row_facts(row, now) for row in rows[:MAX_ROWS]],
        "more": max(0, len(rows) - MAX_ROWS),
    }


def why_facts(why: WhyOut, now: float) -> dict[str, JsonValue]:
    """Return the service's sentences; without the first one, which the view shows already.

    The expected start is included for any position: a row has it only if the plan does.
    """
    return {
        "request_id": why.request_id,
        "why": [*(why.sentences[1:] if why.wait else why.sentences)],
        "ahead": [*why.ahead_sentences],
        "helps": [each.sentence for each in why.suggestions],
        "start": as_json(expected_start_or_unknown(why, now)),
        "dated": [as_json(each) for each in timed_reasons(why)],
    }


def row_facts(row: QueueEntryOut, now: float) -> dict[str, JsonValue]:
    return {
        "place": row.place,
        "kind": row.kind,
        "devices": units.devices(row.devices, row.model),
        "sentence": row.sentence,
        "why": row.why,
        "expected": as_json(expected_start(row, now)),
        "expected_at": row.expected_at,
        "latest_at": row.latest_at,
        "yours": row.yours,
        "request_id": row.request_id,
        "owner": row.owner,
        "group": row.group,
        "title": row.title,
    }
