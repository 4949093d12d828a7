"""What groups have pinned, and what needs an image, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ...records.audit import AuditEntry
from ...records.images import ImageUse, Pin
from ...scheduling.model.snapshot import Kind
from .pool import Pool


class Pins(Pool):
    """``hub.ports.pins.Pins`` on the dictionaries."""

    def pins(self) -> tuple[Pin, ...]:
        with self._lock:
            return tuple(self._pins[key] for key in sorted(self._pins))

    def put_pin(self, pin: Pin, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self.group(pin.group)
            self._pins[pin.group, pin.image] = pin
            self._board.note(change)

    def remove_pin(self, group: str, image: str, *, change: AuditEntry | None = None) -> bool:
        with self._lock:
            removed = self._pins.pop((group, image), None) is not None
            self._board.note(change if removed else None)
            return removed

    def image_uses(self) -> Mapping[str, tuple[ImageUse, ...]]:
        found = defaultdict[str, list[ImageUse]](list)
        with self._lock:
            for request in reversed(self._requests.values()):
                ended = request.ended_at is not None
                if request.image and not (ended and request.kind is Kind.SESSION):
                    use = ImageUse(request_id=request.id, ended=ended)
                    found[request.image].append(use)
        return {image: tuple(uses) for image, uses in found.items()}
