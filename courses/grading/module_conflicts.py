"""Keep the files of a submission from taking the place of released files.

A module of the release that a test or a cell imports must be that of the release. Python prefers a
package to a module and an extension module to Python code, so that a file of another name can
shadow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final

_SUFFIXES: Final = frozenset({".py", ".pyc", ".so", ".pyd"})
_CACHE: Final = "__pycache__"
_INIT: Final = "__init__"
_MOST_NOTES: Final = 10

Module = tuple[str, ...]


def merged(
    own: Mapping[str, bytes], released: Mapping[str, bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files to grade with, and notes for the student on those that were not used."""
    modules = {module for name in released if (module := _module(name))}
    files, notes = dict(released), []
    for name, content in own.items():
        if name in released:
            if content != released[name]:
                notes.append(f"{name} was changed: the assignment's own was used.")
        elif shadowed := _shadowed(name, modules):
            notes.append(
                f"{name} was left out: it would replace the assignment's module {shadowed}."
            )
        else:
            files[name] = content
    more = len(notes) - _MOST_NOTES
    if more > 0:
        notes[_MOST_NOTES:] = [f"So were {more} further files."]
    return files, tuple(notes)


def _module(name: str) -> Module:
    """The module that a file is, by its path; empty for other files."""
    path = PurePosixPath(name)
    # Of helper.cpython-311-x86_64-linux-gnu.so the module is helper.
    stem = path.name.partition(".")[0]
    folders = tuple(part for part in path.parts[:-1] if part != _CACHE)
    if path.suffix not in _SUFFIXES:
        return ()
    return folders if stem == _INIT else (*folders, stem)


def _shadowed(name: str, modules: Iterable[Module]) -> str:
    """The released module that Python would not find beside this file; empty for none."""
    own = _module(name)
    # The file is the module itself, or a package that contains it.
    found = (module for module in modules if own and module[: len(own)] == own)
    return ".".join(min(found, default=()))
