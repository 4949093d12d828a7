"""The port to backups that administrators start on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupProgress:
    """The newest backup that this service process has started.

    Attributes:
        target: its folder; empty if none was started.
        copied, total: bytes; the total is 0 until it is known.
        error: why it failed, as a sentence; empty if it has not.
    """

    target: str = ""
    running: bool = False
    copied: int = 0
    total: int = 0
    error: str = ""


class Backups(Protocol):
    """Backups of the running site into a folder that the site has configured."""

    @property
    def folder(self) -> str:
        """The folder in which backups are created."""

    def start(self, *, homes: bool, who: str) -> bool:
        """Start a backup in the background; False if one is running.

        Raises:
            InvalidInput: the site cannot be backed up, or the folder is in the state folder.
        """

    def progress(self) -> BackupProgress: ...
