"""Bodies of the gallery."""

from __future__ import annotations

from .items import (
    GalleryForkIn,
    GalleryForkOut,
    GalleryItemDetailOut,
    GalleryItemOut,
    GalleryItemsOut,
    GalleryJobOut,
    GalleryParameterOut,
    GalleryPublishIn,
    GalleryRunIn,
    GalleryVersionOut,
)

__all__ = [
    "GalleryForkIn",
    "GalleryForkOut",
    "GalleryItemDetailOut",
    "GalleryItemOut",
    "GalleryItemsOut",
    "GalleryJobOut",
    "GalleryParameterOut",
    "GalleryPublishIn",
    "GalleryRunIn",
    "GalleryVersionOut",
]
