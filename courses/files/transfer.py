"""Convert files between request bodies, checked bundles and stored blobs."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from ...hub.errors import InvalidInput, TooLarge
from ...hub.schemas.courses import BundleIn, ContentOut, FileRefOut
from ..model.interfaces import Blobs
from ..model.records import FileRef, Folder
from .bundle import MAX_BYTES, FileBundle, folder_sha256, unpacked

_LONGEST = (MAX_BYTES + 2) // 3 * 4
"""Characters of base64 for ``MAX_BYTES``: checked before decoding."""


def bundle_of_body(body: BundleIn) -> FileBundle | None:
    """The checked files of a body; None where it has none.

    Raises:
        InvalidInput, TooLarge: of the files.
    """
    if body.files and body.archive:
        raise InvalidInput(
            "There are both files and an archive.", accepted="One of the two.", field="files"
        )
    if body.archive:
        return unpacked(_decoded("archive", body.archive))
    if not body.files:
        return None
    if sum(len(file.content) for file in body.files) > _LONGEST + 4 * len(body.files):
        raise TooLarge(
            f"The files have more than {MAX_BYTES >> 20} MiB together.",
            accepted="Leave out what can be made or downloaded again.",
            field="files",
        )
    return FileBundle.of((file.name, _decoded(file.name, file.content)) for file in body.files)


def _decoded(name: str, text: str) -> bytes:
    if len(text) > _LONGEST:
        raise TooLarge(
            f"{name[:80]!r} is too large.", accepted=f"{MAX_BYTES >> 20} MiB.", field="files"
        )
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InvalidInput(
            f"The content of {name[:80]!r} is not base64.", accepted="Base64.", field="files"
        ) from None


def store_bundle(blobs: Blobs, bundle: FileBundle) -> Folder:
    """Store the contents of a bundle; all of it is on disk when this returns."""
    files = tuple(
        FileRef(name=name, sha256=blobs.put(content), size=len(content))
        for name, content in bundle.files.items()
    )
    # ``put`` has hashed each content already.
    sha256 = folder_sha256({file.name: file.sha256 for file in files})
    return Folder(sha256=sha256, files=files)


def content_out(blobs: Blobs, file: FileRef) -> ContentOut:
    with blobs.open(file.sha256) as content:
        return ContentOut(name=file.name, content=base64.b64encode(content.read()).decode())


def contents_out(bundle: FileBundle) -> list[ContentOut]:
    return [
        ContentOut(name=name, content=base64.b64encode(content).decode())
        for name, content in bundle.files.items()
    ]


def contents(blobs: Blobs, files: Iterable[FileRef | FileRefOut]) -> dict[str, bytes]:
    """The contents of files by name."""
    found = {}
    for file in files:
        with blobs.open(file.sha256) as content:
            found[file.name] = content.read()
    return found


def ref_out(file: FileRef) -> FileRefOut:
    return FileRefOut(name=file.name, sha256=file.sha256, size=file.size)
