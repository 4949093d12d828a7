"""Forms with files: rosters, and folders of an assignment."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from ....courses.files.bundle import MAX_FILES, FileBundle, unpacked
from ...errors import InvalidInput
from ...schemas.courses import FileIn
from ..security.csrf import FIELD, HEADER
from .context import web_of
from .edit_versions import base_on_form
from .visitors import Guest

_MOST_FIELDS = 100
_LONGEST_FIELD = 4 << 20
"""The preview of a roster sends its text back in a field: at most the max size in UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """An uploaded form: fields by name, and files by the name of their field."""

    fields: Mapping[str, str]
    files: Mapping[str, tuple[tuple[str, bytes], ...]]

    def text(self, field: str) -> str:
        """Return the text of one file; empty if none was selected. Raises InvalidInput."""
        for name, content in self.files.get(field, ()):
            try:
                return content.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise InvalidInput(
                    f"{name[:80]} is not UTF-8 text.",
                    accepted="Save the table as 'CSV UTF-8'.",
                    field=field,
                ) from None
        return ""

    def single(self, field: str, accepted: str) -> FileIn:
        """Return the only file of a field, also an archive, as it is. Raises InvalidInput."""
        found = self.files.get(field, ())
        if len(found) != 1:
            raise InvalidInput(
                f"{len(found) or 'No'} files were selected.", accepted=accepted, field=field
            )
        ((name, content),) = found
        return FileIn(name=name, content=base64.b64encode(content).decode())

    def folder(self, field: str) -> list[FileIn]:
        """Return the files of a field, or the content of a single .zip.

        Raises:
            InvalidInput, TooLarge: for the files or the archive.
        """
        found = self.files.get(field, ())
        if not found:
            return []
        if len(found) == 1 and found[0][0].lower().endswith(".zip"):
            files = _without_outer(unpacked(found[0][1]))
        else:
            files = FileBundle.of(found).files
        return [
            FileIn(name=name, content=base64.b64encode(content).decode())
            for name, content in files.items()
        ]


def _without_outer(bundle: FileBundle) -> Mapping[str, bytes]:
    """Remove the top folder of an archive that contains only that folder."""
    outer, _, _ = next(iter(bundle.files)).partition("/")
    inside = f"{outer}/"
    if not all(name.startswith(inside) for name in bundle.files):
        return bundle.files
    return {name.removeprefix(inside): content for name, content in bundle.files.items()}


async def _uploaded(request: Request, visitor: Guest) -> Uploaded:
    """Read an uploaded form.

    Raises:
        Forbidden: it was not sent by a page of Carrel.
    """
    form = await request.form(
        max_files=MAX_FILES + 1, max_fields=_MOST_FIELDS, max_part_size=_LONGEST_FIELD
    )
    given = form.get(FIELD)
    token = request.headers.get(HEADER) or (given if isinstance(given, str) else None)
    web_of(request).caller_access.csrf.check(request, visitor.session, token)
    fields: dict[str, str] = {}
    files: dict[str, tuple[tuple[str, bytes], ...]] = {}
    for name, value in form.multi_items():
        if not isinstance(value, UploadFile):
            fields[name] = value
        elif value.filename:
            files[name] = (*files.get(name, ()), (value.filename, await value.read()))
    base_on_form(fields)
    return Uploaded(fields=fields, files=files)


Uploads = Annotated[Uploaded, Depends(_uploaded)]
