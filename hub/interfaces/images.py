"""The ports for images: stored pins and uses, and the images of a backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..records.audit import AuditEntry
from ..records.images import Image, ImageUse, Pin


class ImagePinStore(Protocol):
    """The part of the store for images; see ``hub.interfaces.store``."""

    def pins(self) -> tuple[Pin, ...]:
        """Return all pins, by group and image, including expired ones."""

    def put_pin(self, pin: Pin, *, change: AuditEntry | None = None) -> None:
        """Create or replace the pin of a group and image. Raises NotFound for the group."""

    def remove_pin(self, group: str, image: str, *, change: AuditEntry | None = None) -> bool:
        """Delete a pin and return True; without one, write nothing and return False."""

    def image_uses(self) -> Mapping[str, tuple[ImageUse, ...]]:
        """Return the uses of each image by reference, newest first: jobs and other dependents."""


class ImageSource(Protocol):
    """A source of the available images, usually the backend."""

    def images(self) -> tuple[Image, ...] | None:
        """Return all builds of all images, by name and newest first.

        None if the backend does not run work in images, as with local processes.

        Raises:
            Unavailable: no engine has answered since the start.
        """
