"""The images that a form offers, with a description of each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ...errors import Unavailable
from ...messages import units
from ...records.identity import Identity
from ...schemas.images import ImageOut, ImagesOut
from ..dependencies.context import WebContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageChoice:
    """An option: its value and its text."""

    value: str
    text: str


def image_choices(
    web: WebContext, who: Identity, groups: Collection[str], chosen: str
) -> list[ImageChoice]:
    """Return the options; none on a backend without images, or while it is not responding.

    Args:
        chosen: the current value: a build that would not be listed is added.
    """
    try:
        # A name refers to the build that the user's groups have pinned, for administrators too.
        found = web.images.shown(replace(who, admin=False), groups)
    except Unavailable:
        return []  # Admission reports the error if it persists.
    newest = [image for image in found.images if image.newest]
    newest.sort(key=lambda image: (not image.default, image.name))
    choices = [ImageChoice(value=image.name, text=_line(image, found)) for image in newest]
    if chosen and choices and all(choice.value != chosen for choice in choices):
        text = f"{units.short_reference(chosen)}, this build"
        choices.append(ImageChoice(value=chosen, text=text))
    return choices


def _line(image: ImageOut, found: ImagesOut) -> str:
    held = [pin for pin in found.pins if pin.holds and pin.image == image.name]
    size = [units.size(image.size_bytes)] if image.size_bytes else []
    parts = [f"{image.name}: {image.title}", *size]
    return ", ".join([*parts, *(pin.sentence for pin in held)])
