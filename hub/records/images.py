"""The images that an engine has, how one is named, and what a course has pinned.

An image is known by its digest, the id of its configuration: it says what is in the image, and
is the same on every engine that the image is loaded into. A *reference* is ``NAME@sha256:…``;
a bare ``NAME`` stands for what the group has pinned, else for the newest build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_REFERENCE = re.compile(r"(?P<name>[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?)(?:@(?P<digest>.*))?")
_DIGEST = re.compile(r"(?:sha256:)?(?P<digits>[0-9a-f]{12,64})")
"""Also as lists show it: its first digits tell builds apart."""
ACCEPTED = "The name of an image, such as 'torch', alone or with its digest: torch@sha256:…"
MOST = 160
"""Characters of a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One build of an image, as the engines have it.

    Attributes:
        digest: ``sha256:`` and 64 hexadecimal digits.
        packages: the ones to choose it by, with their versions: ``numpy 2.4.6``.
        nodes: whose engines have it.
        default: of the name that is taken if no image is chosen.
    """

    name: str
    digest: str
    title: str
    summary: str
    size_bytes: int
    built_at: float
    kernels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    default: bool = False

    @property
    def reference(self) -> str:
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A group's promise to itself: this image stays this build.

    Attributes:
        until: the last day on which it holds, None for ever.
    """

    group: str
    image: str
    digest: str
    until: date | None
    set_by: str
    set_at: float

    @property
    def reference(self) -> str:
        return f"{self.image}@{self.digest}"

    def holds(self, now: float) -> bool:
        """Days end at midnight UTC, as those of a term do."""
        if self.until is None:
            return True
        end = datetime(self.until.year, self.until.month, self.until.day, tzinfo=UTC)
        return now < (end + timedelta(days=1)).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUse:
    """A request that ran, runs or will run in an image."""

    request_id: str
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An image as it was written: a name, and perhaps a digest or its beginning."""

    name: str
    digest: str = ""

    def fits(self, image: Image) -> bool:
        """Whether it may be this build; a name alone may be any of that name."""
        return image.name == self.name and image.digest.startswith(self.digest)

    @classmethod
    def read(cls, text: str) -> Reference | None:
        """None for what names no image."""
        found = _REFERENCE.fullmatch(text)
        if found is None:
            return None
        if found["digest"] is None:
            return cls(name=found["name"])
        digest = _DIGEST.fullmatch(found["digest"])
        return cls(name=found["name"], digest=f"sha256:{digest['digits']}") if digest else None


def newest(images: tuple[Image, ...], name: str) -> Image | None:
    """The last build of that name that every machine has; while none is everywhere, the last."""
    machines = {node for image in images for node in image.nodes}
    found = [image for image in images if image.name == name]
    return max(
        found,
        key=lambda image: (machines.issubset(image.nodes), image.built_at, image.digest),
        default=None,
    )
