"""Bodies of ngshare's REST API (LibreTexts/ngshare), for its existing clients.

All responses have ``success``. Files are lists with contents in base64 and MD5 checksums.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .base import In, Out
from .errors import ErrorOut

STAMP = "%Y-%m-%d %H:%M:%S.%f %Z"
"""Format of the id of a submission: the time of the server, in UTC."""


class TreeFileIn(In):
    """A file of a request; ``checksum`` is its MD5, if given."""

    path: str
    content: str
    checksum: str | None = None


TREE = TypeAdapter(Annotated[list[TreeFileIn], Field(max_length=2000)])
"""The form field ``files``, which is JSON."""


class TreeFileOut(Out):
    """A file of a response; ``content`` is null in lists."""

    path: str
    checksum: str
    content: str | None = None


class DoneOut(Out):
    success: Literal[True] = True


class FailedOut(ErrorOut):
    """An error: ngshare's clients read the first two fields, other clients the rest."""

    success: Literal[False] = False
    message: str


class NamesOut(DoneOut):
    """Names of courses or assignments."""

    courses: list[str] | None = None
    assignments: list[str] | None = None


class TreeOut(DoneOut):
    """Files; with the time of the submission for submissions and feedback."""

    files: list[TreeFileOut]
    timestamp: str | None = None


class TakenOut(DoneOut):
    """A stored submission; ``sha256`` and ``sentence`` of the receipt are additions of Carrel."""

    timestamp: str
    sha256: str
    sentence: str


class SentOut(Out):
    """A submission; ``counts``, ``standing`` and ``sentence`` are additions of Carrel."""

    student_id: str
    timestamp: str
    counts: bool
    standing: str
    sentence: str


class SentListOut(DoneOut):
    submissions: list[SentOut]


class WhoOut(Out):
    """A user with the name from the roster; Carrel stores no e-mail addresses."""

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
