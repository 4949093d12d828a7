"""Publish signed heads at a place outside the service: in a file, or by a command.

A head that could not be published is tried again; nothing waits for it. A crash between the
publication and its record publishes a head twice, which changes nothing.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import Unavailable
from ..proofs.document import SignedHead

_SECONDS: Final = 60.0
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

    def publish(self, head: SignedHead) -> None:
        """Publish one head. Raises Unavailable."""
        line = head.model_dump_json() + "\n"
        if self.file:
            _append(Path(self.file), line)
        if self.command:
            _run(self.command, line)


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a", encoding="ascii") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error


def _run(command: str, line: str) -> None:
    try:
        done = subprocess.run(
            shlex.split(command),
            input=line,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Unavailable(f"The command {command!r} failed: {error}.") from error
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-_MOST:]
        raise Unavailable(
            f"The command {command!r} ended with exit status {done.returncode}: {told}"
        )
