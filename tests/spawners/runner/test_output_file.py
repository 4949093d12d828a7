"""The output notebook on a full disk: the last save stays, and the next one saves everything."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import nbformat
import pytest

from carrel.spawners.runner.notebook.output_file import NotebookFile


def test_a_save_on_a_full_disk_is_made_up_for_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "output.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    file = NotebookFile(path, notebook)
    file.save()
    before = path.read_bytes()
    notebook.cells[0].source = "2"
    file.changed.add(0)

    def full(_: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    file.save()
    with pytest.raises(OSError, match="No space left"):
        file.finish()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path], "no draft is left"
    monkeypatch.undo()
    file.save()
    assert nbformat.read(path, as_version=4).cells[0].source == "2"
