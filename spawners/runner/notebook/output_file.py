"""Save the output notebook atomically; only changed cells are serialised again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import nbformat
from nbformat import NotebookNode

from ....hub.attempts.journal import DISK_FULL, log_line

_PRETTY_BYTES: Final = 4 << 20


class NotebookFile:
    """The file of the output notebook.

    Attributes:
        changed: indices of the cells that the next save serialises again.
    """

    def __init__(self, path: Path, nb: NotebookNode) -> None:
        self._path = path
        self._nb = nb
        self._texts = [""] * len(nb.cells)
        self.changed = set(range(len(nb.cells)))

    def save(self) -> None:
        """Replace the file; on a full disk, the previous version stays until the next save."""
        try:
            self._save()
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            log_line(f"the output is not saved now: {error.strerror}")

    def _save(self) -> None:
        for index in self.changed:
            self._texts[index] = json.dumps(self._nb.cells[index], ensure_ascii=False)
        self.changed = set()
        rest = {key: self._nb[key] for key in self._nb if key != "cells"}
        self._write(
            '{"cells": [\n'
            + ",\n".join(self._texts)
            + "\n],\n"
            + json.dumps(rest, ensure_ascii=False).removeprefix("{")
            + "\n"
        )

    def finish(self) -> None:
        """Save all cells, in Jupyter's format unless the file is too large for that.

        Raises:
            OSError: for example because the disk is full.
        """
        self._texts = [""] * len(self._nb.cells)
        self.changed = set(range(len(self._nb.cells)))
        self._save()
        if self._path.stat().st_size < _PRETTY_BYTES:
            text: str = nbformat.writes(self._nb)  # type: ignore[no-untyped-call]  # has no types
            self._write(text)

    def _write(self, text: str) -> None:
        draft = self._path.with_name(f".{self._path.name}.part")
        try:
            draft.write_bytes(text.encode("utf-8", "replace"))
            draft.replace(self._path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
