"""The journals of all kernels of a server, in a private folder of its user."""

from __future__ import annotations

import logging
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .output_journal import CellRequest, JournalOut, OutputJournal, notebook_of

LEFT_SECONDS: Final = 30 * 86_400.0
LEFT_BYTES: Final = 256 << 20
"""Limits of the journals of ended kernels, until their notebook is opened again."""


@dataclass(slots=True)
class KernelJournals:
    """Journals by kernel; an error of the disk is logged once for each kernel and ends nothing."""

    root: Path
    log: logging.Logger
    _journals: dict[str, OutputJournal] = field(default_factory=dict)
    _pages: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Open connections by kernel and session."""
    _failed: set[str] = field(default_factory=set)

    def connected(self, kernel: str, client: str) -> None:
        self._pages[kernel, client] += 1

    def disconnected(self, kernel: str, client: str) -> None:
        self._pages[kernel, client] -= 1
        if self._pages[kernel, client] <= 0:
            del self._pages[kernel, client]

    def begin(self, kernel: str, asked: CellRequest) -> None:
        with self._logged(kernel):
            self._journal(kernel).begin(asked)

    def hears(self, kernel: str, request: str) -> bool:
        journal = self._journals.get(kernel)
        return journal is not None and journal.hears(request)

    def hear(self, kernel: str, request: str, kind: str, content: dict[str, Any]) -> None:
        journal = self._journals[kernel]
        is_live = (kernel, journal.client_of(request)) in self._pages
        with self._logged(kernel):
            journal.hear(request, kind, content, is_live=is_live)

    def restarted(self, kernel: str) -> None:
        with self._logged(kernel):
            self._journal(kernel).clear()

    def died(self, kernel: str) -> None:
        with self._logged(kernel):
            self._journal(kernel).die()

    def gone(self, kernel: str) -> None:
        """The outputs stay until the notebook is opened with another kernel."""
        with self._logged(kernel):
            self._journal(kernel).die()
            self._journals.pop(kernel).close()
        self._failed.discard(kernel)

    def settle(self, kernel: str, requests: list[str]) -> None:
        with self._logged(kernel):
            self._journal(kernel).settle(requests)

    def changes(
        self, kernel: str, after: int, *, notebook: str, running: Collection[str]
    ) -> JournalOut:
        """Return what has changed, and take over what earlier kernels of the notebook have left.

        Args:
            kernel: one that runs.
            after: the number that an earlier answer gave; -1 at first.
            notebook: its path, if a notebook asks.
            running: all kernels that run.
        """
        journal = self._journal(kernel)
        with self._logged(kernel):
            journal.name_notebook(notebook)
            if after < 0 and notebook:
                for folder in self._left(running):
                    if notebook_of(folder) == notebook:
                        self.gone(folder.name)
                        journal.adopt(folder)
        return journal.changes(after, lambda client: (kernel, client) in self._pages)

    def prune(self, now: float | None = None) -> None:
        """Remove journals that are too old or too large, oldest first; before kernels run."""
        now = time.time() if now is None else now
        size = 0
        for folder in self._left(()):
            size += sum(path.stat().st_size for path in folder.iterdir())
            if size > LEFT_BYTES or now - folder.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        while self._journals:
            self._journals.popitem()[1].close()

    def _journal(self, kernel: str) -> OutputJournal:
        if kernel not in self._journals:
            self._journals[kernel] = OutputJournal.load(self.root / kernel)
        return self._journals[kernel]

    def _left(self, running: Collection[str]) -> list[Path]:
        """Return the folders of kernels that are gone, newest first."""
        if not self.root.is_dir():
            return []
        folders = [
            path
            for path in self.root.iterdir()
            if path.name not in running and path.is_dir() and not path.is_symlink()
        ]
        return sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)

    @contextmanager
    def _logged(self, kernel: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if kernel not in self._failed:
                self._failed.add(kernel)
                self.log.warning("outputs of kernel %s cannot be kept: %s", kernel, error)
