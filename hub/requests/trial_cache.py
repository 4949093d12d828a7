"""The trials of the sweeps that were shown last, so that a page reads only what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from ..attempts.trials import TrialLines, TrialRecord, read_on
from ..schemas.sweeps import SharingOut
from ..sweeps.trials import Trial

K = TypeVar("K")
V = TypeVar("V")
_REMEMBERED: Final = 16
"""Sweeps; the trials of a large one take about 10 MB."""


class TrialCache:
    """The lines of the trials of the last sweeps, and their values in the order of the space."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: OrderedDict[Path, TrialLines] = OrderedDict()
        self._planned: OrderedDict[str, tuple[Trial, ...]] = OrderedDict()
        self._sharing: OrderedDict[str, SharingOut] = OrderedDict()

    def records(self, folder: Path, name: str) -> Mapping[int, TrialRecord]:
        """Return what ``read_trials`` returns, and read only the lines since the last call."""
        with self._lock:
            known = self._lines.get(folder / name, TrialLines())
        found = read_on(folder, name, known)
        with self._lock:
            if found.size:
                _remember(self._lines, folder / name, found)
            else:
                self._lines.pop(folder / name, None)
        return found.found

    def planned(self, request_id: str, make: Callable[[], tuple[Trial, ...]]) -> tuple[Trial, ...]:
        """Return the trials of a sweep, whose space never changes."""
        return self._made(self._planned, request_id, make)

    def sharing(self, request_id: str, make: Callable[[], SharingOut]) -> SharingOut:
        """Return what trials of a sweep share, whose notebook never changes."""
        return self._made(self._sharing, request_id, make)

    def _made(self, known: OrderedDict[str, V], request_id: str, make: Callable[[], V]) -> V:
        with self._lock:
            value = known.get(request_id)
        found = make() if value is None else value
        with self._lock:
            _remember(known, request_id, found)
        return found


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
