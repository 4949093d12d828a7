"""The values about images that travel over HTTP."""

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
        str, Field(max_length=10, description="Its last day, such as `2027-02-15`; empty for ever.")
    ] = ""


class PinOut(Out):
    """A group keeps to one build of an image; ``sentence`` is ready to be shown.

    ``holds`` is false once its last day is over, ``there`` where no engine has the build.
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

    ``reference`` names it for good. ``newest`` is the one that its bare name stands for where
    nothing is pinned, ``default`` the image of who chooses none.
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
    """``choice`` is false on an engine that runs nothing in images.

    ``may_pin`` names the groups in which the caller may pin one.
    """

    choice: bool
    images: list[ImageOut]
    pins: list[PinOut]
    may_pin: list[str] = []


class NeededOut(Out):
    image: str
    why: str


class NeedsOut(Out):
    """The builds that must stay, for a course or for an output that is kept."""

    needed: list[NeededOut]
