"""Observe which files of the job's folders are read while it runs, and hash them at its end.

The kernel of the operating system reports each file that any program closes in a watched folder
(inotify(7)): also files that a library opens below Python, or a program of another language. It
reports neither which program it was, nor files in other folders; links are not followed.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import struct
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ....hub.files.safe_fs import opened_file
from ....hub.records.json_value import Json

HOW: Final = (
    "Files that any program on the machine closed in the watched folders while the attempt ran, "
    "hashed at its end. Not seen: files in other, hidden or linked folders, and network data."
)
MOST_FOLDERS: Final = 256
MOST_FILES: Final = 200
FIRST_BYTES: Final = 16 << 20
BYTES_A_SECOND: Final = 4 << 20
"""Bytes that are hashed for each second of the run: one percent of it, at 400 MB/s."""
_CLOSE_WRITE, _CLOSE_NOWRITE, _MOVED_TO, _CREATE = 0x8, 0x10, 0x80, 0x100
_ONLY_FOLDER, _NO_LINK, _IS_FOLDER, _OVERFLOW = 0x01000000, 0x02000000, 0x40000000, 0x4000
_MASK = _CLOSE_WRITE | _CLOSE_NOWRITE | _MOVED_TO | _CREATE | _ONLY_FOLDER | _NO_LINK
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16
_PART = 1 << 20
_CACHED = re.compile(r"(?:^|/)__pycache__/([^/.]+)\.[^/]*\.pyc$")
_SKIPPED = frozenset({"node_modules"})


class ObservedInputs:
    """The files that were read in some folders.

    Args:
        roots: folders by the name that their files get: ``home``, ``work`` or ``course``.
        top: the working folder, which is watched first; below one of the roots.
    """

    def __init__(self, roots: Mapping[str, Path], top: Path) -> None:
        self._roots = {name: path.resolve() for name, path in roots.items()}
        self._began, self._began_monotonic = time.time(), time.monotonic()
        self._folders: dict[int, Path] = {}
        self._read: dict[Path, None] = {}
        self._created: set[Path] = set()
        self._missed = self._unwatched = False
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            self._unwatched = True
            return
        tops = [top.resolve(), *(p for name, p in self._roots.items() if name == "course")]
        for folder in _breadth_first(tops):
            if len(self._folders) >= MOST_FOLDERS or not self._watch(folder):
                self._unwatched = True
                break

    def _watch(self, folder: Path) -> bool:
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK)
        if number >= 0:
            self._folders[number] = folder
        return number >= 0 or ctypes.get_errno() != errno.ENOSPC  # the watches are used up

    def poll(self) -> None:
        """Read what has been reported so far; called several times a second."""
        while self._descriptor >= 0:
            try:
                events = os.read(self._descriptor, _BUFFER)
            except OSError:  # usually: there is no further event
                return
            at = 0
            while at < len(events):
                number, mask, _, length = _EVENT.unpack_from(events, at)
                name = events[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                self._take(number, mask, os.fsdecode(name))

    def _take(self, number: int, mask: int, name: str) -> None:
        folder = self._folders.get(number)
        if mask & _OVERFLOW:
            self._missed = True
        if folder is None or not name or mask & _IS_FOLDER or name.startswith("."):
            return
        path = folder / name
        if mask & (_CREATE | _MOVED_TO):
            self._created.add(path)
        elif len(self._read) < 16 * MOST_FILES:
            self._read[path] = None
        else:
            self._missed = True

    def as_json(self) -> dict[str, Json]:
        """Return the inputs with their hashes. Ends the observation."""
        self.poll()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        seconds = time.monotonic() - self._began_monotonic
        budget = FIRST_BYTES + int(seconds * BYTES_A_SECOND)
        found: dict[str, Json] = {}
        more = 0
        for path in self._read:
            named = self._named(path)
            if named is None or path in self._created or named[2] in found:
                continue
            if len(found) >= MOST_FILES:
                more += 1
                continue
            root, steps, name = named
            entry, used = self._hashed(root, steps, budget)
            budget -= used
            if entry is not None:
                found[name] = {"path": name, **entry}
        return {
            "how": HOW,
            "files": list(found.values()),
            "left_out": more,
            "incomplete": self._missed or self._unwatched,
        }

    def _named(self, path: Path) -> tuple[Path, tuple[str, ...], str] | None:
        """Return root, steps and name of a file: a module's source for its compiled form."""
        for name, root in self._roots.items():
            if path.is_relative_to(root):
                relative = _CACHED.sub(r"/\1.py", f"/{path.relative_to(root)}").lstrip("/")
                with suppress(UnicodeEncodeError):
                    relative.encode()
                    return root, tuple(relative.split("/")), f"{name}/{relative}"
        return None

    def _hashed(
        self, root: Path, steps: tuple[str, ...], budget: int
    ) -> tuple[dict[str, Json] | None, int]:
        try:
            with opened_file(root, *steps) as file:
                about = os.fstat(file.fileno())
                if about.st_mtime >= self._began:
                    return {"size": about.st_size, "note": "changed while the job ran"}, 0
                if about.st_size > budget:
                    note = f"too large to be hashed: {about.st_size:,} bytes"
                    return {"size": about.st_size, "note": note}, 0
                digest, size = hashlib.sha256(), 0
                while size <= about.st_size and (part := file.read(_PART)):
                    digest.update(part)
                    size += len(part)
                return {"size": size, "sha256": digest.hexdigest()}, size
        except FileNotFoundError:
            return {"note": "deleted before the job ended"}, 0
        except OSError:
            return None, 0


def _breadth_first(tops: list[Path]) -> Iterator[Path]:
    """Yield folders and those below them, without hidden ones and links."""
    waiting = deque(tops)
    while waiting:
        folder = waiting.popleft()
        yield folder
        try:
            with os.scandir(folder) as entries:
                below = sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith(".")
                    and entry.name not in _SKIPPED
                    and entry.is_dir(follow_symlinks=False)
                )
        except OSError:
            continue
        waiting.extend(folder / name for name in below)
