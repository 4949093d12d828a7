"""A hand-out is fetched again: the student's folder and the new version become one folder.

Three sets of files by name go in: the hand-out that the student has got, the new one, and what
the student has now. Nothing of the student's is lost. Notebooks are merged by cell; another file
that both changed is kept as ``name.student-copy.ext`` beside the new one. What was deleted of a
hand-out comes back: that is how one begins a file anew.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePosixPath

from ..notebooks import document
from ..notebooks.document import NotebookDocument
from ..notebooks.merge import merge_notebook

_NOTEBOOK = ".ipynb"
_COPY = "student-copy"
_EMPTY = NotebookDocument(cells=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What the folder holds afterwards, and a sentence for each thing that somebody should see."""

    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


def merge(old: Mapping[str, bytes], new: Mapping[str, bytes], mine: Mapping[str, bytes]) -> Merged:
    """The student's files brought up to the new hand-out; ``old`` is empty where it is unknown."""
    folder = _Folder(new=new, mine=mine)
    for name, content in new.items():
        if name in mine:
            folder.meet(name, old.get(name), content, mine[name])
        else:
            folder.files[name] = content
            if name in old:
                folder.notes.append(f"{name} was missing, and is there again.")
    for name, content in mine.items():
        if name not in new and content != old.get(name):
            folder.keep(name, content)
    return Merged(files=dict(sorted(folder.files.items())), notes=tuple(folder.notes))


@dataclass(slots=True, kw_only=True)
class _Folder:
    new: Mapping[str, bytes]
    mine: Mapping[str, bytes]
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def meet(self, name: str, old: bytes | None, new: bytes, mine: bytes) -> None:
        """A file that the student and the new hand-out have."""
        if new in (old, mine):
            self.files[name] = mine
        elif mine == old:
            self.files[name] = new
        elif not (name.endswith(_NOTEBOOK) and self._notebook(name, old, new, mine)):
            self.files[name] = new
            kept = self._aside(name, mine)
            self.notes.append(f"{name} was changed in the hand-out and by you: yours is {kept}.")

    def keep(self, name: str, content: bytes) -> None:
        """A file of the student's own, under another name where a new one stands in its way."""
        if _collides(name, self.new):
            kept = self._aside(name, content)
            self.notes.append(f"{name} stands in the way of the new hand-out: it is {kept} now.")
        else:
            self.files[name] = content

    def _notebook(self, name: str, old: bytes | None, new: bytes, mine: bytes) -> bool:
        """Whether both could be read, and are one now."""
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
                f"{name}: {_cells(found.kept)} changed in the hand-out and by you; yours stands "
                "below the new one, marked."
            )
        if found.returned:
            self.notes.append(f"{name}: {_cells(found.returned)} missing, and back again.")
        return True

    def _aside(self, name: str, content: bytes) -> str:
        """Put it beside, unless it lies there already; returns its name there."""
        for aside in _names_beside(name):
            if self.mine.get(aside) == content:
                return aside
            if not _collides(aside, [*self.new, *self.mine, *self.files]):
                self.files[aside] = content
                return aside
        raise AssertionError("names beside a name do not end")


def _names_beside(name: str) -> Iterator[str]:
    """``data.csv`` → ``data.student-copy.csv``, ``data.student-copy-2.csv``, …

    Between them ``folder.student-copy/data.csv``, where the folder's name is taken by a file.
    """
    path = PurePosixPath(name)
    for number in count(1):
        mark = _COPY if number == 1 else f"{_COPY}-{number}"
        yield str(path.with_name(f"{path.stem}.{mark}{path.suffix}"))
        if len(path.parts) > 1:
            yield str(PurePosixPath(f"{path.parts[0]}.{mark}", *path.parts[1:]))


def _collides(name: str, others: Iterable[str]) -> bool:
    """Whether a disk could take it for one of the others, or one would be the other's folder."""
    plain = _plain(name)
    for each in map(_plain, others):
        if each == plain or each.startswith(f"{plain}/") or plain.startswith(f"{each}/"):
            return True
    return False


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _cells(number: int) -> str:
    return "1 cell was" if number == 1 else f"{number} cells were"
