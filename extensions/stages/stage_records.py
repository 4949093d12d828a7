"""The record of the stages that have run, in a file of a job, so that none runs again.

A line is written when a stage, or a part of it, is done and its checkpoint is on disk. A line that
a crash has cut off counts as absent.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from .branches import ScheduleBranch

_NAME = "stages.jsonl"


class StageRecords:
    """Steps and reported values by branch.

    Args:
        folder: where the file lies; None to remember nothing beyond the process.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / _NAME
        self._found: dict[str, list[tuple[int, list[dict[str, float]]]]] = {}
        if self._path is not None and self._path.exists():
            for line in self._path.read_bytes().splitlines():
                self._read(line)

    def write(self, branch: ScheduleBranch, values: list[dict[str, float]]) -> None:
        """Record what the next steps of a branch have reported; they start at ``branch.done``."""
        if self._path is None:
            return
        found = {"branch": branch.key, "first": branch.done, "values": values}
        # A line of its own, even behind one that a crash has cut off.
        line = b"\n" + json.dumps(found, separators=(",", ":")).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(f"{self._path} cannot be written: the disk is full")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def apply(self, branch: ScheduleBranch) -> int:
        """Mark the steps of a branch that have run before as done; return how many."""
        before = branch.done
        for first, values in sorted(self._found.pop(branch.key, ()), key=lambda each: each[0]):
            new = values[branch.done - first :] if first <= branch.done else []
            if new:
                branch.add(new)
            branch.checkpoints.add(first + len(values))
        return branch.done - before

    def _read(self, line: bytes) -> None:
        try:
            found = json.loads(line)
            part = int(found["first"]), list(found["values"])
            self._found.setdefault(str(found["branch"]), []).append(part)
        except (ValueError, KeyError, TypeError):
            return
