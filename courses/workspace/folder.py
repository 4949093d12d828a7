"""Fetch an assignment into a folder on a student's disk, and read the folder to submit it.

Fetching never overwrites work: an existing folder is merged with the new version by file and by
cell (``folder_merge``), and what cannot be merged is kept beside it. A small file in the folder
records its version.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...hub.client.work_archive import IGNORE_FILE, WorkArchive, collect, safe_target
from ...hub.errors import Conflict, InvalidInput, NotFound, TooLarge
from ...hub.files.filenames import draft_beside
from ...hub.schemas.courses import ContentOut, FileIn, HandOutOut
from ..files.bundle import MAX_BYTES, MAX_FILES
from .folder_merge import merge

MARK = ".carrel-assignment.json"

Fetch = Callable[[int | None], HandOutOut]
"""Gets a released version; the newest for None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRecord:
    """The version that a folder was fetched from."""

    course: str
    assignment: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContent:
    """The files in a folder.

    Attributes:
        left_out: links and special files, which cannot be submitted.
    """

    files: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()

    @property
    def sent(self) -> list[FileIn]:
        """The files in a request body."""
        return [
            FileIn(name=name, content=base64.b64encode(content).decode())
            for name, content in self.files.items()
        ]


def read(folder: Path) -> FolderContent:
    """Read all files but those of git and Jupyter.

    Raises:
        InvalidInput: it is not a folder, or cannot be read.
        TooLarge: it holds much more than an assignment may.
    """
    if not folder.is_dir():
        raise _no_folder(folder)
    return _content(collect(folder))


def files_to_submit(folder: Path) -> FolderContent:
    """Read the files to submit or to release.

    Raises:
        InvalidInput: it is not a folder, or cannot be read.
        TooLarge: a site does not accept so much; checked before any file is read.
    """
    if not folder.is_dir():
        raise _no_folder(folder)
    try:
        found = collect(folder)
    except TooLarge as error:  # of the larger limits of a job
        raise _too_large(folder) from error
    if len(found.items) > MAX_FILES or found.size_bytes > MAX_BYTES:
        raise _too_large(folder)
    return _content(found)


def _content(found: WorkArchive) -> FolderContent:
    try:
        files = {each.name: each.path.read_bytes() for each in found.items if each.name != MARK}
    except OSError as error:
        raise InvalidInput(f"{error.filename} cannot be read: {error.strerror}.") from error
    return FolderContent(files=files, left_out=found.left_out)


def _no_folder(folder: Path) -> InvalidInput:
    return InvalidInput(f"{folder} is not a folder.", accepted="The folder of the assignment.")


def _too_large(folder: Path) -> TooLarge:
    return TooLarge(
        f"{folder} holds more than an assignment may: {MAX_FILES} files, {MAX_BYTES >> 20} MiB.",
        accepted=f"Name in {folder / IGNORE_FILE} what does not belong to it.",
    )


def fetch_record_of(folder: Path) -> FetchRecord | None:
    """The record in a folder; None if it was not fetched, or the record cannot be read."""
    try:
        return FetchRecord(**json.loads((folder / MARK).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def fetch_into(folder: Path, fetch: Fetch) -> tuple[HandOutOut, tuple[str, ...]]:
    """Update a folder to the newest version; returns it with notes for the student.

    Raises:
        InvalidInput: the folder holds another assignment, or cannot be written.
        NotFound: as ``fetch``.
    """
    before, there = fetch_record_of(folder), folder.exists()
    mine = read(folder).files if there else {}
    # The old version first: the service stores the last one fetched.
    old = None
    if before is not None:
        with suppress(NotFound):  # of a course that was created again
            old = fetch(before.version)
    new = fetch(None)
    if before and (before.course, before.assignment) != (new.course, new.assignment):
        raise InvalidInput(
            f"{folder} holds {before.assignment} of {before.course}.",
            accepted="Another folder, named with --to.",
        )
    merged = merge(contents(old.files) if old else {}, contents(new.files), mine)
    try:
        write_changes(folder, mine, merged.files)
        mark = {"course": new.course, "assignment": new.assignment, "version": new.version}
        put_file(folder / MARK, json.dumps(mark).encode())
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}.") from error
    return new, merged.notes


def contents(files: list[ContentOut]) -> dict[str, bytes]:
    return {file.name: base64.b64decode(file.content) for file in files}


def write_changes(folder: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Write new files before removing old ones, so that an interruption loses nothing.

    Raises:
        Conflict: a file was saved since it was read; nothing of the user's is replaced.
        InvalidInput: a path, or a link on it, leads outside of the folder.
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: safe_target(folder, name) for name in {*before, *after}}
    gone = [name for name in before if name not in after]
    changed = [name for name in after if before.get(name) != after[name]]
    changed.sort(key=lambda name: name in before)  # copies of files before what replaces these
    # A file in the place of a folder, or the reverse.
    blocked = [
        name
        for name in changed
        if any(f"{name}/".startswith(f"{g}/") or g.startswith(f"{name}/") for g in gone)
    ]
    for name in (each for each in changed if each not in blocked):
        if name in before:
            _check_unchanged(paths[name], before[name])
        put_file(paths[name], after[name])
    for name in gone:
        _check_unchanged(paths[name], before[name])
        paths[name].unlink()
        for above in paths[name].relative_to(folder).parents[:-1]:
            if not any((folder / above).iterdir()):
                (folder / above).rmdir()
    for name in blocked:
        put_file(paths[name], after[name])


def _check_unchanged(path: Path, read: bytes) -> None:
    """Require a file as it was read: JupyterLab may have saved it in another tab since."""
    if path.read_bytes() != read:
        raise Conflict(
            f"{path.name} was saved while it was merged.", accepted="Save your work and try again."
        )


def put_file(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = draft_beside(path)
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
