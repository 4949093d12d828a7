"""Merge a new version of an assignment, or of other material, into a user's folder.

The input is three sets of files by name: the version that the user fetched, the new version, and
the user's folder. No work is lost: notebooks are merged by cell; any other file that both sides
changed is kept as ``name.student-copy.ext`` beside the new one. Deleted files of the version come
back, so that users can start a file again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePosixPath

from ...hub.files.filenames import shortened
from ..files.bundle import MAX_PART_BYTES
from ..notebooks import document
from ..notebooks.document import NotebookDocument
from ..notebooks.merge import merge_notebook

_NOTEBOOK = ".ipynb"
STUDENT_COPY = "student-copy"
_EMPTY = NotebookDocument(cells=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The files of the merged folder, and notes for the student."""

    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


def merge(
    old: Mapping[str, bytes],
    new: Mapping[str, bytes],
    mine: Mapping[str, bytes],
    *,
    copy: str = STUDENT_COPY,
) -> Merged:
    """Merge a folder; ``old`` is empty where the fetched version is unknown.

    ``copy``: what the name of a copy beside a file contains.
    """
    folder = _Folder(new=new, mine=mine, copy=copy)
    for name, content in new.items():
        if name in mine:
            folder.merge_file(name, old.get(name), content, mine[name])
        else:
            folder.files[name] = content
            if name in old:
                folder.notes.append(f"{name} was missing and was restored.")
    for name, content in mine.items():
        if name not in new and content != old.get(name):
            folder.keep_own(name, content)
    return Merged(files=dict(sorted(folder.files.items())), notes=tuple(folder.notes))


@dataclass(slots=True, kw_only=True)
class _Folder:
    new: Mapping[str, bytes]
    mine: Mapping[str, bytes]
    copy: str
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def merge_file(self, name: str, old: bytes | None, new: bytes, mine: bytes) -> None:
        """Merge a file that is in the student's folder and in the new version."""
        if new in (old, mine):
            self.files[name] = mine
        elif mine == old:
            self.files[name] = new
        elif not (name.endswith(_NOTEBOOK) and self._notebook(name, old, new, mine)):
            self.files[name] = new
            kept = self._aside(name, mine)
            self.notes.append(f"{name} was changed in the new version and by you: yours is {kept}.")

    def keep_own(self, name: str, content: bytes) -> None:
        """Keep a file of the student, under another name where a new file has its name."""
        if _collides(name, self.new):
            kept = self._aside(name, content)
            self.notes.append(f"{name} has the name of a file of the new version: yours is {kept}.")
        else:
            self.files[name] = content

    def _notebook(self, name: str, old: bytes | None, new: bytes, mine: bytes) -> bool:
        """Merge a notebook; False if one of them cannot be read."""
        news, mines = document.read(new), document.read(mine)
        if news is None or mines is None:
            return False
        base = None if old is None else document.read(old)
        found = merge_notebook(base or _EMPTY, news, mines)
        if found.notebook in (mines, news):
            self.files[name] = mine if found.notebook == mines else new
        else:
            self.files[name] = document.write(found.notebook)
        if found.kept:
            self.notes.append(
                f"{name}: {_cells(found.kept)} changed in the new version and by you; yours is "
                "below the new one, with a mark."
            )
        if found.returned:
            self.notes.append(f"{name}: {_cells(found.returned)} missing and restored.")
        return True

    def _aside(self, name: str, content: bytes) -> str:
        """Store a copy beside the file, unless it is there; returns the name of the copy."""
        for aside in _names_beside(name, self.copy):
            if self.mine.get(aside) == content:
                return aside
            if not _collides(aside, [*self.new, *self.mine, *self.files]):
                self.files[aside] = content
                return aside
        raise AssertionError("unreachable: the names are infinite")


def _names_beside(name: str, copy: str) -> Iterator[str]:
    """``data.csv`` → ``data.student-copy.csv``, ``data.student-copy-2.csv``, …

    In between ``folder.student-copy/data.csv``, for a folder whose name a file has.
    """
    path = PurePosixPath(name)
    for number in count(1):
        mark = copy if number == 1 else f"{copy}-{number}"
        most = MAX_PART_BYTES - len(mark) - 1  # Otherwise the folder could not be submitted.
        short = PurePosixPath(shortened(path.name, most))
        yield str(path.with_name(f"{short.stem}.{mark}{short.suffix}"))
        if len(path.parts) > 1:
            outer = shortened(path.parts[0], most)
            yield str(PurePosixPath(f"{outer}.{mark}", *path.parts[1:]))


def _collides(name: str, others: Iterable[str]) -> bool:
    """Whether a file system could confuse it with one of the others, or one contains the other."""
    plain = _plain(name)
    for each in map(_plain, others):
        if each == plain or each.startswith(f"{plain}/") or plain.startswith(f"{each}/"):
            return True
    return False


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _cells(number: int) -> str:
    return "1 cell was" if number == 1 else f"{number} cells were"
