"""Convert forms, times and files of ngshare's REST API to and from Carrel's values.

Error messages begin with ngshare's own words, followed by Carrel's sentence.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from ...hub.errors import CarrelError, InvalidInput
from ...hub.schemas.courses import ContentOut, FileIn
from ...hub.schemas.ngshare import STAMP, TREE, TreeFileIn, TreeFileOut, TreeOut
from ..files.bundle import checked_name

_DIGITS = 10
"""More digits than a version number has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NgshareForm:
    """The fields of a call; the last three are Carrel's own.

    Attributes:
        source: the teacher's files.
        version: the released version that a submission answers.
    """

    files: str | None = None
    timestamp: str | None = None
    source: str | None = None
    due: str | None = None
    version: str | None = None

    def answered_version(self) -> int:
        """The version; 0 where none is given."""
        said = self.version or "0"
        if not (said.isascii() and said.isdigit() and len(said) < _DIGITS):
            raise InvalidInput(
                f"{said[:80]!r} is not a version of an assignment.",
                accepted="A number.",
                field="version",
            )
        return int(said)

    def wanted_timestamp(self) -> str:
        if not self.timestamp:
            raise InvalidInput(
                "Please supply timestamp.",
                accepted=f"{STAMP!r}, as it was listed.",
                field="timestamp",
            )
        return self.timestamp


# -- values -----------------------------------------------------------------------------------


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(STAMP)


def read_stamp(text: str) -> str:
    """Normalize a time as ``stamp`` writes it, with or without its zone."""
    for form in (STAMP, STAMP.removesuffix(" %Z")):
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).strftime(STAMP)
        except ValueError:
            continue
    raise InvalidInput(
        f"Time format incorrect. {text[:80]!r} is not understood.",
        accepted="As in '2027-01-30 10:30:47.524219 UTC'.",
        field="timestamp",
    )


def sent_files(tree: str | None) -> list[FileIn]:
    """Parse the files of a form field, and check names, contents and checksums."""
    if not tree:
        raise InvalidInput("Please supply files.", accepted="A list, as JSON.", field="files")
    try:
        files = TREE.validate_json(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(
            f"Files cannot be JSON decoded. {where}: {first['msg']}.".replace(". : ", ". "),
            accepted="A list of objects with 'path' and 'content'.",
            field="files",
        ) from None
    if not files:
        raise InvalidInput("Please supply files.", accepted="One at least.", field="files")
    return [_file(file) for file in files]


def _file(file: TreeFileIn) -> FileIn:
    with said("Illegal path", InvalidInput):
        name = checked_name(file.path)
    # ngshare's clients break base64 into lines.
    content = "".join(file.content.split())
    try:
        data = base64.b64decode(content.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InvalidInput(
            f"Content cannot be base64 decoded. It is that of {name!r}.",
            accepted="Base64.",
            field="files",
        ) from None
    if file.checksum is not None and file.checksum.lower() != _md5(data):
        raise InvalidInput(
            f"Checksum mismatch. {name!r} is not what was sent.",
            accepted="The MD5 of its content, or none.",
            field="files",
        )
    return FileIn(name=name, content=content)


def tree(files: Iterable[ContentOut], *, list_only: bool, timestamp: str | None = None) -> TreeOut:
    found = [
        TreeFileOut(
            path=file.name,
            checksum=_md5(base64.b64decode(file.content)),
            content=None if list_only else file.content,
        )
        for file in files
    ]
    return TreeOut(files=found, timestamp=timestamp)


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@contextmanager
def said(words: str, kind: type[CarrelError]) -> Iterator[None]:
    """Put ngshare's words in front of Carrel's error message."""
    try:
        yield
    except kind as error:
        said = f"{words}. {error.message}"
        raise type(error)(said, accepted=error.accepted, field=error.field) from error
