"""The rest of the world: the clock, people's files, and JupyterHub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

FULL_BYTES = 1 << 20
"""Free bytes below which a home counts as full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFiles:
    """Attributes:
    files: name (with ``/`` between folders) → size in bytes and time of change.
    left_out: how many entries are not offered: links, special files, names that are no
        UTF-8, and everything beyond the limits of the listing.
    """

    files: Mapping[str, tuple[int, float]]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeUse:
    """How full a home with a limit is, in bytes."""

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
    """Homes and outputs. A volume or an object store can take the folder's place."""

    def home(self, owner: str) -> Path:
        """The owner's home, created if need be; distinct owners never share one."""

    def home_use(self, owner: str) -> HomeUse | None:
        """Return the disk usage of the home; None without a limit."""

    def input_path(self, request_id: str) -> Path: ...

    def put_input(self, request_id: str, notebook: bytes) -> None:
        """Store the submitted notebook, whole or not at all."""

    def archive_path(self, request_id: str) -> Path: ...

    def put_archive(self, request_id: str, archive: bytes) -> None:
        """Store the uploaded working folder, whole or not at all."""

    def files(self, request_id: str, epoch: int) -> OutputFiles:
        """What the attempt put into its output folder; links and special files are left out."""

    def open_file(self, request_id: str, epoch: int, name: str) -> BinaryIO:
        """One file of the output folder, opened so that no link can lead out of it.

        Raises:
            NotFound: no regular file of this name lies there.
        """

    def is_full(self) -> bool:
        """Return whether the disk of the outputs is full."""

    def discard(self, request_id: str) -> None:
        """Delete the input of a request that was never stored."""

    def keeps(self, request_id: str) -> bool:
        """Whether any input or output of the request exists."""

    def attempt_folder(self, request_id: str, epoch: int) -> Path:
        """Made with mode 0700."""

    def output(self, request_id: str, epoch: int) -> bytes | None:
        """The executed notebook as far as it is; None before there is one.

        Raises:
            TooLarge: it is more than can be shown.
        """

    def log(self, request_id: str, epoch: int, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Return the log of the attempt from a byte offset on; empty before the first output."""
