"""Bodies of the items of the gallery: published jobs, notebooks and pipelines."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from ..base import FiniteJson, In, Out
from ..requests import JobIn

LONGEST_TITLE: Final = 120
LONGEST_DESCRIPTION: Final = 20_000
_Key = Annotated[str, Field(max_length=64)]
_Version = Annotated[
    int, Field(ge=0, le=1_000_000, description="Number of a version; 0 for the newest one.")
]
_Title = Annotated[str, Field(max_length=LONGEST_TITLE)]
_Audience = Annotated[
    str,
    Field(
        max_length=64,
        description="The group whose members may see it, or `*` for all users; by default the "
        "group of the job.",
    ),
]


class GalleryPublishIn(In):
    """Body of ``POST /api/v1/gallery``: exactly one of ``request`` and ``job``.

    The source of the notebook and the parameters are copied. Files beside the notebook are not.
    """

    request: Annotated[str, Field(max_length=64, description="The id of a job of your own.")] = ""
    pipeline: Annotated[
        bool, Field(description="With `request`: all jobs of its pipeline, not only this one.")
    ] = False
    job: Annotated[
        JobIn | None, Field(description="A job that has not run, as in `POST /requests`.")
    ] = None
    title: Annotated[
        str, Field(max_length=LONGEST_TITLE, description="Required, except for a new version.")
    ] = ""
    description: Annotated[
        str | None,
        Field(
            max_length=LONGEST_DESCRIPTION,
            description="Markdown; null keeps that of the previous version.",
        ),
    ] = None
    audience: _Audience = ""
    outputs: Annotated[
        bool,
        Field(description="Whether to publish also the executed notebook, or the log of a command"),
    ] = False
    item: Annotated[
        str, Field(max_length=64, description="The item of which this is a new version.")
    ] = ""


class GalleryForkIn(In):
    """Body of ``POST /api/v1/gallery/{id}/fork``."""

    version: _Version = 0
    title: Annotated[_Title, Field(description="By default that of the item.")] = ""
    audience: Annotated[
        str, Field(max_length=64, description="A group, or `*`; by default that of the item.")
    ] = ""


class GalleryRunIn(In):
    """Body of ``POST /api/v1/gallery/{id}/run``.

    ``parameters`` replace the published ones with the same names; a pipeline has none to replace.
    The same ``idempotency_key`` returns the first requests.
    """

    version: _Version = 0
    group: Annotated[
        str, Field(max_length=64, description="By default your only group, if you have one.")
    ] = ""
    parameters: dict[str, FiniteJson] = {}
    idempotency_key: _Key = ""


class GalleryForkOut(Out):
    """The version that an item was made from."""

    id: str
    version: int
    owner: str


class GalleryItemOut(Out):
    """An item in a list; ``kind`` and ``what`` are those of the newest version."""

    id: str
    owner: str
    audience: str
    """The group whose members may see it, or `*` for all users."""
    title: str
    kind: Literal["notebook", "command", "pipeline"]
    what: str
    version: int
    created_at: float
    updated_at: float
    forked_from: GalleryForkOut | None = None


class GalleryParameterOut(Out):
    """A parameter of a notebook."""

    name: str
    type: str
    """`whole number`, `number`, `yes or no`, `text` or `JSON`."""
    default: str
    """The source text of its default in the notebook."""
    value: JsonValue = None
    """The published value, if ``given``."""
    given: bool = False
    """Whether the published job replaces the default."""
    help: str = ""


class GalleryJobOut(Out):
    """A job of a version; several in a pipeline, each after those that it waits for."""

    name: str
    notebook: str = ""
    command: list[str] = []
    devices: int = 0
    model: str | None = None
    seconds: int
    image: str = ""
    """As ``NAME@sha256:…``; empty on an engine without images."""
    image_missing: str = ""
    """A sentence, if no engine has the image any more."""
    after: list[str] = []
    parameters: list[GalleryParameterOut] = []
    sha256: str = ""
    """Of the published notebook, which has no outputs."""
    output: str = ""
    """The name of the published output; empty if none is."""
    left_out: list[str] = []
    """What was not published, one sentence each."""


class GalleryVersionOut(Out):
    """A version of an item."""

    version: int
    published_at: float
    description: str
    request: str = ""
    """The published job; its owner and the teachers of its group can open it."""
    succeeded: bool = False
    """Whether the published jobs had succeeded."""
    jobs: list[GalleryJobOut]


class GalleryItemDetailOut(GalleryItemOut):
    """An item with one version, and the numbers and times of all."""

    shown: GalleryVersionOut
    versions: dict[int, float]
    """When each version was published, by its number; newest first."""
    may_publish: bool = False
    """Whether the caller may publish a new version: its owner."""
    may_withdraw: bool = False
    """Whether the caller may withdraw it: its owner, a teacher of the group, an administrator."""
    runs_unchanged: bool = True
    """Whether the form of the page Submit can show its only job."""


class GalleryItemsOut(Out):
    items: list[GalleryItemOut]
    next: int = 0
    """``offset`` of the next page; 0 on the last one."""
