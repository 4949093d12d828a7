"""Lists the notebooks and Python scripts in the user's own home, for a form that offers them.

Programs of the owner write the home while it is read here: every step is opened relative to the
descriptor of its parent, and links are never followed.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from ..errors import InvalidInput, NotFound, TooLarge
from ..interfaces.files import Files
from ..schemas import MAX_NOTEBOOK_BYTES, SCRIPT
from ..schemas.names import hidden_in
from .local import MAX_DEPTH
from .safe_fs import opened_file, opened_folder

MAX_SHOWN = 500
_MAX_SCANNED = 10_000
_SUBMITTED = (".ipynb", SCRIPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFolder:
    """The contents of one folder that a form offers.

    Attributes:
        path: below the home, with ``/`` between folders; empty for the home itself.
        folders: names of the folders in it.
        notebooks: names of the notebooks and scripts in it.
        left_out: number of entries beyond the limit.
    """

    path: str
    folders: tuple[str, ...]
    notebooks: tuple[str, ...]
    left_out: int = 0

    def below(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    @property
    def above(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class HomeNotebooks:
    """Reads the home of ``owner``."""

    files: Files

    def folder(self, owner: str, path: str) -> HomeFolder:
        """Return folders and notebooks by name, without hidden ones, links and special files.

        Raises:
            InvalidInput: the path leaves the home.
            NotFound: there is no such folder, or its path contains a link.
        """
        steps = _steps(path)
        try:
            with opened_folder(self.files.home(owner), *steps) as folder:
                folders, notebooks, more = _scan(folder)
        except OSError:
            raise NotFound(
                f"Your home has no folder {path[:200]!r}.", accepted="Choose one from the list."
            ) from None
        notebooks.sort(key=str.casefold)
        folders.sort(key=str.casefold)
        shown, rest = folders[:MAX_SHOWN], max(0, MAX_SHOWN - len(folders))
        left_out = more + len(folders) - len(shown) + max(0, len(notebooks) - rest)
        return HomeFolder(
            path="/".join(steps),
            folders=tuple(shown),
            notebooks=tuple(notebooks[:rest]),
            left_out=left_out,
        )

    def notebook(self, owner: str, path: str) -> tuple[str, bytes]:
        """Return the name and content of a notebook.

        Raises:
            InvalidInput: it is not a notebook, or the path leaves the home.
            NotFound: there is no such notebook, or its path contains a link.
            TooLarge: it exceeds the maximum size of a notebook.
        """
        steps = _steps(path)
        if not steps or not steps[-1].endswith(_SUBMITTED):
            raise InvalidInput(
                f"{path[:200]!r} is not a notebook or a script.",
                accepted="A file of your home (.ipynb or .py).",
            )
        try:
            with opened_file(self.files.home(owner), *steps) as file:
                content = file.read(MAX_NOTEBOOK_BYTES + 1)
        except OSError:
            raise NotFound(
                f"Your home has no notebook {path[:200]!r}.", accepted="Choose one from the list."
            ) from None
        if len(content) > MAX_NOTEBOOK_BYTES:
            raise TooLarge(
                f"{steps[-1]} is larger than {MAX_NOTEBOOK_BYTES // 2**20} MiB.",
                accepted="Clear its outputs and save it.",
            )
        return steps[-1], content


def _steps(path: str) -> tuple[str, ...]:
    steps = tuple(step for step in path.split("/") if step)
    hidden = any(step.startswith(".") or "\0" in step or "\\" in step for step in steps)
    try:
        path.encode()
    except UnicodeEncodeError:
        hidden = True
    if hidden or len(steps) > MAX_DEPTH or path.startswith("/"):
        raise InvalidInput(
            f"{path[:200]!r} is not a path below your home.",
            accepted="A path such as course/week1/train.ipynb, without hidden folders.",
        )
    return steps


def _scan(folder: int) -> tuple[list[str], list[str], int]:
    folders, notebooks = list[str](), list[str]()
    with os.scandir(folder) as entries:
        for seen, entry in enumerate(entries):
            if seen >= _MAX_SCANNED:
                return folders, notebooks, 1
            if entry.name.startswith(".") or hidden_in(entry.name):
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                continue  # It was deleted during the scan.
            if stat.S_ISDIR(mode):
                folders.append(entry.name)
            elif stat.S_ISREG(mode) and entry.name.endswith(_SUBMITTED):
                notebooks.append(entry.name)
    return folders, notebooks, 0
