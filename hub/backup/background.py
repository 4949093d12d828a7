"""Backups in the background of the service, for the page of administrators."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..errors import CarrelError
from ..interfaces.backups import BackupProgress
from ..interfaces.clock import Clock
from ..interfaces.store import Store
from .copier import Advance
from .create import PARTIAL, BackupOptions, back_up, check, record
from .staging import remove_interrupted

log = logging.getLogger(__name__)

_NAMES = "carrel-????-??-??-??????"
"""Pattern of the names of these backups."""


@dataclass(slots=True, eq=False)
class BackgroundBackups:
    """Runs one backup at a time in a thread, and remembers how far it is."""

    state: StateFolder
    settings: Settings
    store: Store
    clock: Clock
    _progress: BackupProgress = field(default_factory=BackupProgress)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def folder(self) -> str:
        chosen = self.settings.backup_folder
        return chosen or str(self.state.root.with_name(f"{self.state.root.name}.backups"))

    def start(self, *, homes: bool, who: str) -> bool:
        at = datetime.fromtimestamp(self.clock(), UTC)
        target = Path(self.folder) / f"carrel-{at:%Y-%m-%d-%H%M%S}"
        options = BackupOptions(state=self.state, target=target, homes=homes)
        check(options)
        with self._lock:
            if self._progress.running:
                return False
            self._progress = BackupProgress(target=str(target), running=True)
        threading.Thread(target=self._run, args=(options, who), name="backup", daemon=True).start()
        return True

    def remove_interrupted(self) -> None:
        """Delete what backups left that ended with the service, and tell of the newest one."""
        removed = remove_interrupted(Path(self.folder), f"{_NAMES}.{PARTIAL}")
        for draft in removed:
            log.warning("removed %s: the service ended during this backup", draft)
        with self._lock:
            if removed and not self._progress.target:
                self._progress = BackupProgress(
                    target=str(removed[-1].with_suffix("")),
                    error="The service ended during the backup. Start it again.",
                )

    def progress(self) -> BackupProgress:
        with self._lock:
            return self._progress

    def say(self, text: str) -> None:
        log.info("backup: %s", text)

    @contextmanager
    def bar(self, _label: str, total: int) -> Iterator[Advance]:
        self._note(total=total)

        def advance(size: int) -> None:
            self._note(copied=self.progress().copied + size)

        yield advance

    def _run(self, options: BackupOptions, who: str) -> None:
        error = "The backup failed: see the log of the service."
        try:
            made = back_up(options, self, self.clock)
            self.store.add_change(record(made, options.target, at=self.clock(), who=who))
            error = ""
        except CarrelError as failed:
            error = str(failed)
            log.warning("backup: %s", failed)
        finally:
            self._note(running=False, error=error)

    def _note(self, **changed: object) -> None:
        with self._lock:
            self._progress = replace(self._progress, **changed)  # type: ignore[arg-type]  # fields
