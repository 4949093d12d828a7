"""What travels in ngshare's REST API (LibreTexts/ngshare), which its clients know.

``success`` is in every answer; files are a list with contents in base64 and MD5 checksums.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .base import In, Out
from .errors import ErrorOut

STAMP = "%Y-%m-%d %H:%M:%S.%f %Z"
"""How a submission is called: by the server's time, in UTC."""


class TreeFileIn(In):
    """A file that is sent; ``checksum`` is its MD5, where one is given."""

    path: str
    content: str
    checksum: str | None = None


TREE = TypeAdapter(Annotated[list[TreeFileIn], Field(max_length=2000)])
"""The form's field ``files``, which is JSON."""


class TreeFileOut(Out):
    """A file; without its content where only a list was asked for."""

    path: str
    checksum: str
    content: str | None = None


class DoneOut(Out):
    success: Literal[True] = True


class FailedOut(ErrorOut):
    """A refusal: ngshare's clients read the first two, everybody else the rest."""

    success: Literal[False] = False
    message: str


class NamesOut(DoneOut):
    """Of courses, or of assignments."""

    courses: list[str] | None = None
    assignments: list[str] | None = None


class TreeOut(DoneOut):
    """Files; those of a submission, or given back on one, with its time."""

    files: list[TreeFileOut]
    timestamp: str | None = None


class TakenOut(DoneOut):
    """A submission was taken. Beyond ngshare: what Carrel says of it."""

    timestamp: str
    sha256: str
    sentence: str


class SentOut(Out):
    """A submission. Beyond ngshare: whether it is the one that is graded, and was on time."""

    student_id: str
    timestamp: str
    counts: bool
    standing: str
    sentence: str


class SentListOut(DoneOut):
    submissions: list[SentOut]


class WhoOut(Out):
    """Names as the roster has them; Carrel knows no addresses."""

    username: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None


class WhoSuccessOut(WhoOut):
    success: Literal[True] = True


class InstructorsOut(DoneOut):
    instructors: list[WhoOut]


class StudentsOut(DoneOut):
    students: list[WhoOut]
