"""Compare the inputs that a receipt names with the files that are there now."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ..files.safe_fs import opened_file
from ..provenance.receipt import JobReceiptOut

_PART: Final = 1 << 20
UPLOADED: Final = "work"
"""Files that were uploaded with the job: they run again as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputComparison:
    """Attributes:
    changes: the inputs that are gone or have changed, one sentence each.
    unchecked: the inputs that were not compared, and further ones that were read, one phrase each.
    """

    changes: list[str]
    unchecked: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFolders:
    """Attributes:
    home: of the user who runs the job again.
    course: the data of its course; None if there is none.
    most_bytes: of all files together that are read to be compared.
    """

    home: Path
    course: Path | None = None
    most_bytes: int = 1 << 30

    def compared(self, receipt: JobReceiptOut) -> InputComparison:
        """Compare the inputs that have a hash with the files that are there."""
        if receipt.reported is None:
            return InputComparison(changes=[], unchecked=["The job reported no inputs"])
        changes, unchecked, left = [], [], self.most_bytes
        inputs = receipt.reported.inputs
        for file in inputs.files:
            if not file.sha256:
                unchecked.append(f"{file.path}: {file.note}")
                continue
            if file.path.partition("/")[0] == UPLOADED:
                continue
            try:
                with self._opened(file.path) as found:
                    same_size = os.fstat(found.fileno()).st_size == file.size
                    if same_size and file.size > left:
                        unchecked.append(f"{file.path}: too large to compare")
                        continue
                    left -= file.size if same_size else 0
                    same = same_size and _digest(found, file.size) == file.sha256
            except OSError:
                changes.append(f"The input {file.path} is gone.")
                continue
            if not same:
                changes.append(f"The input {file.path} has changed.")
        if inputs.left_out:
            unchecked.append(f"{inputs.left_out} further files were read")
        return InputComparison(changes=changes, unchecked=unchecked)

    def _opened(self, name: str) -> BinaryIO:
        """Open an input. Raises OSError if there is no such file in the folders."""
        root, *steps = name.split("/")
        folder = {"home": self.home, "course": self.course}.get(root)
        outside = not steps or any(step in ("", ".", "..") or "\0" in step for step in steps)
        if folder is None or outside:
            raise FileNotFoundError(name)
        return opened_file(folder, *steps)


def _digest(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the first ``size`` bytes: the file may grow while it is read."""
    digest = hashlib.sha256()
    while size > 0 and (part := file.read(min(_PART, size))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest()
