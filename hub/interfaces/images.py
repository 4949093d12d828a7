"""The part of the store for images: pins, and the requests that use an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..records.audit import AuditEntry
from ..records.images import Image, ImageUse, Pin


class ImagePinStore(Protocol):
    """Each method is one transaction; see ``hub.interfaces.store``."""

    def pins(self) -> tuple[Pin, ...]:
        """Return all pins, by group and image, including expired ones."""

    def put_pin(self, pin: Pin, *, change: AuditEntry | None = None) -> None:
        """Create or replace the pin of a group and image. Raises NotFound for the group."""

    def remove_pin(self, group: str, image: str, *, change: AuditEntry | None = None) -> bool:
        """Delete a pin and return True; without one, write nothing and return False."""

    def image_uses(self) -> Mapping[str, tuple[ImageUse, ...]]:
        """By reference: its jobs, and what else lives in it, the newest first."""


class ImageSource(Protocol):
    """Whatever knows which images there are."""

    def images(self) -> tuple[Image, ...] | None:
        """Every build of every image, by name and the newest first.

        None from an engine that runs nothing in images, such as local processes: there is no
        choice then.

        Raises:
            Unavailable: no engine has ever said what it has.
        """
