"""The packages that kernels of each image have used, which warm containers import ahead."""

from __future__ import annotations

import logging
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ....hub.attempts.spec import PACKAGES
from ....hub.files.safe_fs import opened_file
from ...runner.kernels.forkserver import (
    LIST_CHARACTERS,
    Packages,
    merged,
    packages_text,
    parse_packages,
    read_packages,
    write_packages,
)

log = logging.getLogger(__name__)

_WRITTEN: Final = re.compile(rf"{PACKAGES}\.\d{{1,10}}")
_FILES: Final = 20
"""The most lists of one attempt that are read; each kernel writes one."""
_TEXT_BYTES: Final = 64 << 10
"""The longest list that is given to a container, as a variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedPackages:
    """Lists by image; safe to use from any thread.

    A list comes from the jobs of all users. It contains only names, of which a container imports
    those that its image has, before it has an owner.

    Attributes:
        folder: ``STATE/packages``, with a file for each image.
    """

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, image: str) -> str:
        """Return the list for a container of this image, the packages used last first."""
        lines = packages_text(read_packages(self._path(image))).splitlines(keepends=True)
        text = ""
        for line in lines:
            if len((text + line).encode()) > _TEXT_BYTES:
                break
            text += line
        return text

    def learn(self, image: str, attempt: Path) -> None:
        """Add what the kernels of an attempt have written into its folder."""
        used = _used(attempt)
        if not used:
            return
        with self._lock:
            known = read_packages(self._path(image))
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                log.warning("the packages of %s are not kept: %s", image, error)
                return
            write_packages(self._path(image), merged(used, known))

    def _path(self, image: str) -> str:
        return str(self.folder / re.sub(r"[^0-9A-Za-z.-]", "-", image))


def _used(attempt: Path) -> Packages:
    """Read the lists in a folder in which a job may have put anything under their names."""
    used: Packages = {}
    try:
        names = sorted(path.name for path in attempt.iterdir() if _WRITTEN.fullmatch(path.name))
    except OSError:
        return used
    for name in names[:_FILES]:
        try:
            with opened_file(attempt, name) as file:
                text = file.read(LIST_CHARACTERS).decode(errors="replace")
        except OSError:
            continue
        used = merged(parse_packages(text), used)
    return used
