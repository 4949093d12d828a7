"""Images of the engines, references to them, and pins of groups.

An image is identified by its digest, the id of its configuration, which identifies its contents
and is the same on every engine. A *reference* is ``NAME@sha256:…``; a bare ``NAME`` stands for
the build that the group has pinned, else for the newest one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_REFERENCE = re.compile(r"(?P<name>[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?)(?:@(?P<digest>.*))?")
_DIGEST = re.compile(r"(?:sha256:)?(?P<digits>[0-9a-f]{12,64})")
"""A digest or its first digits, as lists show it."""
ACCEPTED = "The name of an image, such as 'torch', alone or with its digest: torch@sha256:…"
MOST = 160
"""Characters of a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One build of an image on the engines.

    Attributes:
        digest: ``sha256:`` and 64 hexadecimal digits.
        packages: its notable packages with their versions: ``numpy 2.4.6``.
        nodes: the nodes whose engines have it.
        default: whether requests without a chosen image use it.
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
    """The build of an image that the requests of a group use.

    Attributes:
        until: its last day; None for no end.
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
        """Whether the pin is in effect; its last day ends at midnight UTC, like those of terms."""
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
    """A reference as the user wrote it: a name, with an optional digest or prefix of it."""

    name: str
    digest: str = ""

    def fits(self, image: Image) -> bool:
        """Whether it matches this build; a bare name matches all builds of that name."""
        return image.name == self.name and image.digest.startswith(self.digest)

    @classmethod
    def read(cls, text: str) -> Reference | None:
        """Parse a reference; None if it is not valid."""
        found = _REFERENCE.fullmatch(text)
        if found is None:
            return None
        if found["digest"] is None:
            return cls(name=found["name"])
        digest = _DIGEST.fullmatch(found["digest"])
        return cls(name=found["name"], digest=f"sha256:{digest['digits']}") if digest else None


def newest(images: tuple[Image, ...], name: str) -> Image | None:
    """Return the newest build of that name that all nodes have, else the newest one."""
    machines = {node for image in images for node in image.nodes}
    found = [image for image in images if image.name == name]
    return max(
        found,
        key=lambda image: (machines.issubset(image.nodes), image.built_at, image.digest),
        default=None,
    )
