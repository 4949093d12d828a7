"""The labels that identify an image of the catalogue on every engine.

Labels of the OCI specification are used where they exist; the others begin with ``org.carrel``.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "org.carrel.image"
"""Only images with this label are in the catalogue."""
KERNELS: Final = "org.carrel.kernels"
"""Names of the kernel specs, separated by spaces."""
PACKAGES: Final = "org.carrel.packages"
"""The main packages with their versions: ``numpy 2.4.6, pandas 3.0.1``."""
LOCK: Final = "org.carrel.lock"
"""SHA-256 of the lock files, those of its base images first."""
TITLE: Final = "org.opencontainers.image.title"
SUMMARY: Final = "org.opencontainers.image.description"
VERSION: Final = "org.opencontainers.image.version"
VARIANT: Final = "org.carrel.variant"
BASE_NAME: Final = "org.opencontainers.image.base.name"
BASE_DIGEST: Final = "org.opencontainers.image.base.digest"


def words(text: str, separator: str | None = None) -> tuple[str, ...]:
    """Split a label that contains several values."""
    return tuple(part.strip() for part in text.split(separator) if part.strip())
