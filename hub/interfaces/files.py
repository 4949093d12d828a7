"""The port to the files of users: homes, inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

FULL_BYTES = 1 << 20
"""Free bytes below which a home counts as full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFiles:
    """The listing of an output folder.

    Attributes:
        files: size in bytes and modification time by name, with ``/`` between folders.
        left_out: the number of omitted entries: links, special files, names that are not UTF-8,
            and entries beyond the limits of the listing.
    """

    files: Mapping[str, tuple[int, float]]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeUse:
    """Disk usage and size of a home with a limit, in bytes."""

    used: int
    size: int

    @property
    def share(self) -> float:
        return self.used / self.size

    @property
    def full(self) -> bool:
        """Whether the home is so full that a Jupyter server could not start."""
        return self.size - self.used < FULL_BYTES


class Files(Protocol):
    """Homes, inputs and outputs, wherever they are stored."""

    def home(self, owner: str) -> Path:
        """Return the owner's home, created if missing; distinct owners never share one."""

    def home_use(self, owner: str) -> HomeUse | None:
        """Return the disk usage of the home; None if homes have no limit."""

    def input_path(self, request_id: str) -> Path: ...

    def put_input(self, request_id: str, notebook: bytes) -> None:
        """Store the submitted notebook atomically."""

    def archive_path(self, request_id: str) -> Path: ...

    def put_archive(self, request_id: str, archive: bytes) -> None:
        """Store the uploaded working folder (a .tar.gz) atomically."""

    def files(self, request_id: str, epoch: int) -> OutputFiles:
        """List the output folder of an attempt, without links and special files."""

    def open_file(self, request_id: str, epoch: int, name: str) -> BinaryIO:
        """Open one file of the output folder without following links.

        Raises:
            NotFound: there is no regular file of this name.
        """

    def is_full(self) -> bool:
        """Return whether the file system of the outputs is full."""

    def discard(self, request_id: str) -> None:
        """Delete the input of a request that was never stored."""

    def keeps(self, request_id: str) -> bool:
        """Return whether any input or output of the request exists."""

    def attempt_folder(self, request_id: str, epoch: int) -> Path:
        """Return the folder of the attempt, created with mode 0700 if missing."""

    def output(self, request_id: str, epoch: int) -> bytes | None:
        """Return the output notebook, complete or not; None before it exists.

        Raises:
            TooLarge: the notebook is too large to be shown.
        """

    def log(
        self,
        request_id: str,
        epoch: int,
        *,
        offset: int = 0,
        limit: int = 1 << 20,
        member: int = 0,
    ) -> bytes:
        """Return at most ``limit`` bytes of the log from ``offset`` on; empty before any output.

        A negative offset counts from the end.

        ``member``: the rank of a member of a gang.
        """
