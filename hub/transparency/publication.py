"""Publish signed heads at a place outside the service: in a file, or by a command.

A head that could not be published is tried again; nothing waits for it. A file gets each head once;
a command may get one again after a crash, which changes nothing.
"""

from __future__ import annotations

import mmap
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import Unavailable
from ..proofs.document import SignedHead

SECONDS: Final = 60.0
"""Most seconds of a command."""
_MOST: Final = 300
"""Characters of the output of a failed command that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPlace:
    """Where heads are published.

    Attributes:
        file: to which a line of JSON is appended; empty for none.
        command: that reads the line; empty for none.
    """

    file: str = ""
    command: str = ""

    @property
    def configured(self) -> bool:
        return bool(self.file or self.command)

    def publish(self, head: SignedHead, *, seconds: float = SECONDS) -> None:
        """Publish one head; a command has so many seconds. Raises Unavailable."""
        line = head.model_dump_json() + "\n"
        if self.file:
            _append(Path(self.file), line)
        if self.command:
            _run(self.command, line, seconds)


def _append(path: Path, line: str) -> None:
    """Append a line unless it is there; a crash may have left a part of one at the end."""
    try:
        has_line, ended = _contents(path, line.encode("ascii"))
        if has_line:
            return
        with path.open("a", encoding="ascii") as file:
            file.write(line if ended else f"\n{line}")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error


def _contents(path: Path, line: bytes) -> tuple[bool, bool]:
    """Return whether a file has a line, and whether its last line is complete."""
    # The place may be a pipe, or allow only to append.
    if not (path.is_file() and path.stat().st_size and os.access(path, os.R_OK)):
        return False, True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.rfind(line) >= 0, text[-1:] == b"\n"


def _run(command: str, line: str, seconds: float) -> None:
    try:
        done = subprocess.run(
            shlex.split(command),
            input=line,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Unavailable(f"The command {command!r} failed: {error}.") from error
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-_MOST:]
        raise Unavailable(
            f"The command {command!r} ended with exit status {done.returncode}: {told}"
        )
