"""Files that say something by being touched."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PAUSE_SECONDS: Final = 1.0


class Mark:
    """A file that somebody writes or touches; ``touched`` is true once for each time.

    Touching it more often than once a second is no more news.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = 0.0

    def touched(self) -> bool:
        try:
            at = self._path.stat().st_mtime
        except OSError:
            return False
        if abs(at - self._last) < _PAUSE_SECONDS:
            return False
        self._last = at
        return True
