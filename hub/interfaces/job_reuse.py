"""The ports to what a job reuses: cells that its course has run, code that was compiled before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..records.leases import LeaseRecord
from ..records.requests import RequestRecord


class SharedPrefixes(Protocol):
    """Finds the prefix with which a job may begin."""

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> bool:
        """Copy a prefix that fits into the folder of an attempt; return whether there was one.

        Raises:
            OSError: the files cannot be copied.
            CarrelError: of the course.
        """

    def used(self, request_id: str, epoch: int) -> None:
        """Record that an attempt has begun with its prefix; safe to repeat."""

    def ended(self, request: RequestRecord, folder: Path) -> None:
        """Delete what an attempt that has ended leaves of a prefix; safe to repeat.

        What a computation has saved stays until it is kept.

        Raises:
            CarrelError: of the course.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCompileCache:
    """What a user's jobs have compiled in one program.

    Attributes:
        program: name of the notebook, or the command.
        request: id of the job that has compiled it.
        group, image: of that job, and of the jobs that load it; empty if it was kept by an earlier
            version of Carrel, and for no image.
        graphs: how many compiled graphs it has.
        size: in bytes.
        used_at: when it was kept, or offered to a job after that.
    """

    program: str
    request: str
    group: str
    image: str
    graphs: int
    size: int
    used_at: float


class CompileCaches(Protocol):
    """Keeps compiled code of each user, and hands it to jobs of the same user only."""

    @property
    def most_bytes(self) -> int:
        """The most that is kept for each user; 0: nothing is."""

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None:
        """Let an attempt use the cache: with what its owner's earlier job has left; never fails."""

    def keep(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None:
        """Keep what an attempt has compiled, for its owner; safe to repeat, never fails."""

    def kept(self, owner: str) -> tuple[KeptCompileCache, ...]:
        """Return what is kept for a user, last used first."""

    def clear(self, owner: str) -> None:
        """Delete what is kept for a user."""

    def remove(self, owner: str, request: str) -> bool:
        """Delete what a job of a user has compiled; return whether there was anything."""


class NoCompileCaches:
    """Has no files: jobs compile as they would without Carrel."""

    most_bytes = 0

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None: ...

    def keep(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None: ...

    def kept(self, owner: str) -> tuple[KeptCompileCache, ...]:
        return ()

    def clear(self, owner: str) -> None: ...

    def remove(self, owner: str, request: str) -> bool:
        return False
