"""Track starts in flight: while one runs, a missing process does not mean a dead attempt."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...hub.errors import BackendFailed


class InFlightStarts:
    """The leases that are being started; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: set[str] = set()

    @contextmanager
    def busy_with(self, lease_id: str) -> Iterator[None]:
        """Mark a lease as starting within the block.

        Raises:
            BackendFailed: another thread is starting it.
        """
        with self._lock:
            if lease_id in self._leases:
                raise BackendFailed(f"Attempt {lease_id} is already being started.")
            self._leases.add(lease_id)
        try:
            yield
        finally:
            with self._lock:
                self._leases.discard(lease_id)

    def now(self) -> frozenset[str]:
        """Return the leases that are starting.

        Call this before listing processes: the process of any other start is then in the list.
        """
        with self._lock:
            return frozenset(self._leases)
