"""The images that a form offers, with what each line says."""

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
    """One line of a form's list: what it sends and what it says."""

    value: str
    text: str


def image_choices(
    web: WebContext, who: Identity, groups: Collection[str], chosen: str
) -> list[ImageChoice]:
    """What a form offers; nothing on an engine without images, or while it does not answer.

    Args:
        chosen: what stands in the form: a build that its list would not show is added.
    """
    try:
        # A name stands for what their own groups have pinned, for administrators too.
        found = web.images.shown(replace(who, admin=False), groups)
    except Unavailable:
        return []  # Admission says so in its own words, if that is still true then.
    newest = [image for image in found.images if image.newest]
    newest.sort(key=lambda image: (not image.default, image.name))
    choices = [ImageChoice(value=image.name, text=_line(image, found)) for image in newest]
    if chosen and choices and all(choice.value != chosen for choice in choices):
        text = f"{units.short_reference(chosen)}, this build"
        choices.append(ImageChoice(value=chosen, text=text))
    return choices


def _line(image: ImageOut, found: ImagesOut) -> str:
    held = [pin for pin in found.pins if pin.holds and pin.image == image.name]
    said = [f"{image.name}: {image.title}", units.size(image.size_bytes)]
    return ", ".join([*said, *(pin.sentence for pin in held)])
