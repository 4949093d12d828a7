"""What runs on devices have told about them, for the pages that show devices."""

from __future__ import annotations

import threading


class DeviceEvidence:
    """Sentences by device, written by the loop; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sentences: dict[str, str] = {}

    def publish(self, device: str, sentences: str) -> None:
        """Replace what is said about a device; empty: nothing is."""
        with self._lock:
            if sentences:
                self._sentences[device] = sentences
            else:
                self._sentences.pop(device, None)

    def of(self, device: str) -> str:
        with self._lock:
            return self._sentences.get(device, "")
