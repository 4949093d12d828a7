"""Runs of the stock papermill command on a computer of student1, for tests with an installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbformat.reader import NotJSONError

from .support import Installation

PAPERMILL = Path(sys.prefix) / "bin" / "papermill"


def write(path: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    cells.insert(0, nbformat.v4.new_markdown_cell("# A notebook"))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


def environment(site: Installation) -> dict[str, str]:
    """A computer on which student1 has signed in with `carrel login`."""
    signed_in = site.cli(
        "login", site.url, "--token", input=site.token("student1") + "\n", check=False
    )
    assert signed_in.returncode == 0, signed_in.stderr
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(site.state),
        "NO_PROXY": "127.0.0.1",
        "CARREL_JOB_TIME": "5m",
    }


def start(site: Installation, folder: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(PAPERMILL), *words],
        cwd=folder,
        env=environment(site) | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def streamed(path: Path) -> list[str]:
    """``shown`` of a notebook that papermill writes meanwhile; empty while it has no whole one."""
    try:
        return shown(read(path))
    except (FileNotFoundError, NotJSONError):
        return []


def shown(notebook: Any) -> list[str]:
    return ["".join(o.get("text", "") for o in c.get("outputs", ())) for c in notebook.cells]


def statuses(notebook: Any) -> list[str]:
    """Return the status of each cell, without the cells by which papermill marks an error."""
    found = [cell.metadata.get("papermill", {}) for cell in notebook.cells]
    return [each.status for each in found if "status" in each]


def notebooks(folder: Path) -> None:
    """Write a notebook that succeeds, one that fails, and one that takes minutes."""
    device = "import os\nprint(lr, os.environ['CARREL_DEVICES'])"
    write(folder / "in.ipynb", "lr = 0.1", device)
    write(folder / "wrong.ipynb", "x = 1", "print('before')\nx / 0", "print('never')")
    slow = "import time\ntime.sleep(240)"
    write(folder / "slow.ipynb", "print('kept')", slow, "print('never')")
