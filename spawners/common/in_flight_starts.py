"""Track starts that are in flight: until they return, an absent process proves nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...hub.errors import BackendFailed


class InFlightStarts:
    """The leases that are being started, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: set[str] = set()

    @contextmanager
    def busy_with(self, lease_id: str) -> Iterator[None]:
        """Mark a lease as starting. Raises BackendFailed if it is being started already."""
        with self._lock:
            if lease_id in self._leases:
                raise BackendFailed(f"Attempt {lease_id} is being started already.")
            self._leases.add(lease_id)
        try:
            yield
        finally:
            with self._lock:
                self._leases.discard(lease_id)

    def now(self) -> frozenset[str]:
        """Return the leases that are starting.

        Call this before listing processes: a start that has returned by then is listed, any other
        is named here.
        """
        with self._lock:
            return frozenset(self._leases)
