"""Bodies of images and pins."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .base import In, Out


class PinIn(In):
    """Body of ``PUT /api/v1/groups/{group}/pins/{image}``."""

    digest: Annotated[
        str, Field(max_length=71, description="`sha256:…`; empty for the newest build.")
    ] = ""
    until: Annotated[
        str,
        Field(max_length=10, description="The last day, such as `2027-02-15`; empty for no end."),
    ] = ""


class PinOut(Out):
    """The build of an image that a group is pinned to, with a ``sentence`` for display.

    ``holds`` is false after the last day, ``there`` is false if no engine has the build.
    """

    group: str
    image: str
    digest: str
    reference: str
    until: str | None = None
    set_by: str
    set_at: float
    holds: bool
    there: bool
    sentence: str


class ImageOut(Out):
    """One build of an image.

    ``reference`` identifies the build permanently. ``newest`` marks the build that is used for the
    bare name without a pin, ``default`` the default image.
    """

    name: str
    digest: str
    reference: str
    title: str
    summary: str
    size_bytes: int
    built_at: float
    kernels: list[str] = []
    packages: list[str] = []
    nodes: list[str] = []
    newest: bool = False
    default: bool = False
    pinned: list[str] = []


class ImagesOut(Out):
    """Images and pins; ``choice`` is false on a backend without images.

    ``may_pin`` lists the groups for which the caller may pin images.
    """

    choice: bool
    images: list[ImageOut]
    pins: list[PinOut]
    may_pin: list[str] = []


class NeededOut(Out):
    image: str
    why: str


class NeedsOut(Out):
    """Builds that must be kept, each with the reason: a pin, or an output that was made with it."""

    needed: list[NeededOut]
