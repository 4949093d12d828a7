"""The files of a repository or notebook as fetched, and which of them are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...courses.workspace.folder import MARK as ASSIGNMENT_MARK
from ...hub.schemas.names import hidden_in

MAX_FILES: Final = 5_000
MAX_BYTES: Final = 128 << 20
"""Of all files of a repository together, and of a notebook."""
MARK: Final = ".carrel-material.json"
"""The record of a folder that was opened by a link."""
_NAME_BYTES: Final = 200
"""Of one step of a path: a copy beside the file has a longer name."""
_PATH_BYTES: Final = 1_000
_NEVER: Final = frozenset({"", ".", "..", ".git", MARK, ASSIGNMENT_MARK})
"""Steps of a path that would lead elsewhere, or make the folder something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedFiles:
    """A version of the files.

    Attributes:
        version: the commit, or the SHA-256 of the notebook.
        branch: the branch or tag; empty for a notebook.
        files: contents by path below the folder, with ``/`` between steps.
        executable: paths of the files that can be run.
        left_out: paths of links, submodules and files whose names cannot be used.
    """

    version: str
    files: Mapping[str, bytes]
    branch: str = ""
    executable: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()


def is_usable_path(path: str) -> bool:
    """Return whether a path names a file below the folder and can be merged and shown."""
    steps = path.split("/")
    if not path or hidden_in(path) or "\\" in path:
        return False
    if len(path.encode()) > _PATH_BYTES or any(len(each.encode()) > _NAME_BYTES for each in steps):
        return False
    return not any(step.casefold() in _NEVER for step in steps)
