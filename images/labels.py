"""The labels by which an image of the catalogue is known on every engine.

What OCI has a name for is called so; the rest begins with ``org.carrel``.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "org.carrel.image"
"""Only what has it is in the catalogue."""
KERNELS: Final = "org.carrel.kernels"
"""Names of the kernel specs, with blanks between them."""
PACKAGES: Final = "org.carrel.packages"
"""What to choose it by, with versions and commas: ``numpy 2.4.6, pandas 3.0.1``."""
LOCK: Final = "org.carrel.lock"
"""SHA-256 of the lock files, its own behind those of the images it stands on."""
TITLE: Final = "org.opencontainers.image.title"
SUMMARY: Final = "org.opencontainers.image.description"
VERSION: Final = "org.opencontainers.image.version"
VARIANT: Final = "org.carrel.variant"
BASE_NAME: Final = "org.opencontainers.image.base.name"
BASE_DIGEST: Final = "org.opencontainers.image.base.digest"


def words(text: str, separator: str | None = None) -> tuple[str, ...]:
    """The parts of a label that holds several."""
    return tuple(part.strip() for part in text.split(separator) if part.strip())
