"""How far each job has come: folded from its events, and kept while people look at it."""

from __future__ import annotations

import threading
from collections import OrderedDict

from .ports.records import EventRecord, RequestRecord
from .ports.store import Store
from .scheduling.model import Kind
from .views import progress_after
from .wire import ProgressOut

_KEPT = 2000


class ProgressBook:
    """A bounded cache over the store's events; a restart reads them again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, tuple[int, ProgressOut | None]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, event: EventRecord) -> None:
        """Take in one more event; one that is not the next is left to ``of``."""
        with self._lock:
            if event.request_id in self._known:
                last, progress = self._known[event.request_id]
                if event.id > last:
                    self._known[event.request_id] = (event.id, progress_after(progress, event))

    def of(self, record: RequestRecord) -> ProgressOut | None:
        if record.kind is Kind.SESSION or record.lease is None:
            return None
        with self._lock:
            if record.id not in self._known:
                last, progress = 0, None
                for event in self._store.events(record.id, limit=100_000):
                    last, progress = event.id, progress_after(progress, event)
                self._known[record.id] = (last, progress)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(record.id)
            return self._known[record.id][1]
