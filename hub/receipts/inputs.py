"""Compare the inputs that a receipt names with the files that are there now."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files.safe_fs import opened_file
from ..provenance.receipt import InputFileOut, JobReceiptOut

_PART: Final = 1 << 20
UPLOADED: Final = "work"
"""Files that were uploaded with the job: they run again as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFolders:
    """Attributes:
    home: of the user who runs the job again.
    course: the data of its course; None if there is none.
    """

    home: Path
    course: Path | None = None

    def changes(self, receipt: JobReceiptOut) -> Iterator[str]:
        """Yield a sentence for each input that is gone or has changed."""
        for file in _hashed(receipt):
            root, _, path = file.path.partition("/")
            if root == UPLOADED:
                continue
            folder = {"home": self.home, "course": self.course}.get(root)
            found = "" if folder is None else _digest(folder, tuple(path.split("/")), file.size)
            if not found:
                yield f"The input {file.path} is gone."
            elif found != file.sha256:
                yield f"The input {file.path} has changed."


def unchecked(receipt: JobReceiptOut) -> list[str]:
    """Return the inputs that have no hash, and further ones that were read, one phrase each."""
    if receipt.reported is None:
        return ["The job reported no inputs"]
    inputs = receipt.reported.inputs
    found = [f"{file.path}: {file.note}" for file in inputs.files if not file.sha256]
    if inputs.left_out:
        found.append(f"{inputs.left_out} further files were read")
    return found


def _hashed(receipt: JobReceiptOut) -> list[InputFileOut]:
    if receipt.reported is None:
        return []
    return [file for file in receipt.reported.inputs.files if file.sha256]


def _digest(folder: Path, steps: tuple[str, ...], size: int) -> str:
    """Return the SHA-256 of a file; another text if its size differs, and "" if it is gone."""
    if any(step in ("", ".", "..") or "\0" in step for step in steps):
        return ""
    try:
        with opened_file(folder, *steps) as file:
            if os.fstat(file.fileno()).st_size != size:
                return "another size"
            digest = hashlib.sha256()
            while part := file.read(_PART):
                digest.update(part)
    except OSError:
        return ""
    return digest.hexdigest()
