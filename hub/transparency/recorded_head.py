"""The size and root of the head that was signed last, in a file beside the database and the key.

An editor of the database alone cannot change it: a log that was rewritten, or whose end was
removed, does not extend it, and is not signed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Final

from ..errors import Unavailable
from ..files.private_file import write_private
from ..store.sql.merkle_log.growth import RecordedHead

FILE_NAME: Final = "log-head.json"
_ROOT_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class RecordedHeadFile:
    """Attributes:
    path: of the file; None records nothing, as for a database on a server.
    lock: held while a head is made and recorded, by the threads of this process.
    """

    path: Path | None
    lock: RLock

    @classmethod
    def beside(cls, database: Path | None) -> RecordedHeadFile:
        path = None if database is None else database.with_name(FILE_NAME)
        return cls(path, RLock())

    def read(self) -> RecordedHead | None:
        """Return the head; None before the first. Raises Unavailable: it cannot be read."""
        if self.path is None:
            return None
        try:
            return parse_recorded_head(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Unavailable(
                f"{self.path}, which records the head that was signed last, cannot be read: "
                f"{error}.",
                accepted="Restore it from a backup, or see the how-to on proofs of the log.",
            ) from error

    def write(self, head: RecordedHead) -> None:
        """Record a head that is stored. Raises Unavailable."""
        if self.path is None:
            return
        try:
            write_private(
                self.path, json.dumps({"size": head.size, "root": head.root.hex()}) + "\n"
            )
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be written: {error.strerror}.") from error


def parse_recorded_head(text: str) -> RecordedHead:
    """Raises ValueError: the text is no recorded head."""
    found = json.loads(text)
    try:
        size, root = found["size"], bytes.fromhex(found["root"])
    except (KeyError, TypeError) as error:
        raise ValueError("it has no size or root") from error
    if type(size) is not int or size < 1 or len(root) != _ROOT_BYTES:
        raise ValueError("it has no size or root")
    return RecordedHead(size=size, root=root)
