"""Choose images of the site for those that a job file names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...schemas.images import ImageOut, ImagesOut
from .description import DescribedJob, DescribedRole, NotKept
from .yaml_source import MalformedJobFile

_WORD: Final = re.compile(r"[a-z]+[0-9]?")
_SAME: Final[Mapping[str, str]] = {"pytorch": "torch", "tf": "tensorflow", "sklearn": "scikit"}
"""Words of images and packages that mean the same."""


def image_of(role: DescribedRole, catalogue: ImagesOut) -> str:
    """Return the image of the catalogue with the very name of the file; empty if there is none."""
    known = {name for each in catalogue.images for name in (each.name, each.reference)}
    return role.image if role.image in known else ""


def nearest(image: str, catalogue: ImagesOut) -> str:
    """Return the name of the image that is nearest; empty for an empty catalogue.

    1. the number of common words of its name and its packages
    2. the number of common words of title and summary
    3. the default image
    4. by name
    """
    wanted = _words([image])

    def order(each: ImageOut) -> tuple[int, int, bool, str]:
        own = len(wanted & _words([each.name, *each.packages]))
        described = len(wanted & _words([each.title, each.summary]))
        return -own, -described, not each.default, each.name

    found = [each for each in catalogue.images if each.newest]
    return min(found, key=order).name if found else ""


def resolved_images(
    file: str, job: DescribedJob, catalogue: ImagesOut, *, chosen: str = "", use_nearest: bool
) -> tuple[Mapping[str, str], Sequence[NotKept]]:
    """Return the image of each role by its name, and which are not those of the file.

    Args:
        chosen: the image for all roles; empty for those of the file.
        use_nearest: use the nearest image where one is missing.

    Raises:
        MalformedJobFile: an image is missing; the message names the nearest.
    """
    if not catalogue.choice:
        reason = "This site has no images: commands run in the environment of the site."
        dropped = {role.image: _not_kept(role, reason) for role in job.roles}
        return {role.name: "" for role in job.roles}, list(dropped.values())
    images: dict[str, str] = {}
    other: dict[str, NotKept] = {}
    for role in job.roles:
        found = chosen or image_of(role, catalogue)
        if not found:
            near = nearest(role.image, catalogue)
            if not near or not use_nearest:
                raise _missing(file, role, near)
            found = near
        if found != role.image:
            other[role.image] = _not_kept(role, f"It runs in the image {found}.")
        images[role.name] = found
    return images, list(other.values())


def _not_kept(role: DescribedRole, reason: str) -> NotKept:
    return NotKept(line=role.line, field=f"image {role.image[:80]}", reason=reason)


def _missing(file: str, role: DescribedRole, near: str) -> MalformedJobFile:
    accepted = f"The nearest is {near}: add --image {near}." if near else "The site has no image."
    return MalformedJobFile(
        file, role.line, f"The site has no image {role.image[:160]!r}.", accepted=accepted
    )


def _words(texts: Sequence[str]) -> set[str]:
    words = (word for text in texts for word in _WORD.findall(text.lower()))
    return {_SAME.get(word, word) for word in words if len(word) > 1}
