"""Jupyter's own programs start ``carrel-fork`` kernels by name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import nbformat
import psutil
import pytest

from carrel.extensions.environment import jupyter_environment

from ...fake_service import eventually
from ..notebooks import notebook, printed, read

KERNEL = {"name": "carrel-fork", "display_name": "fast", "language": "python"}
PARENT = "import os\nprint('forkserver' in open(f'/proc/{os.getppid()}/cmdline').read())"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    home = tmp_path / "home"
    home.mkdir()
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    made = {"PATH": programs, "HOME": str(home), "XDG_RUNTIME_DIR": str(tmp_path)}
    yield made | jupyter_environment({})
    for process in psutil.process_iter(["cmdline"]):
        if any(str(tmp_path) in word for word in process.info["cmdline"] or ()):
            process.kill()


def jupyter(
    environment: Mapping[str, str], folder: Path, *words: str, given: str = "", seconds: float = 120
) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "jupyter"), *words],
        cwd=folder,
        env=environment,
        input=given,
        text=True,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_jupyter_execute_and_console_fork_from_the_second_kernel_on(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    nbformat.write(notebook(PARENT, kernel=KERNEL), tmp_path / "in.ipynb")  # type: ignore[no-untyped-call]
    jupyter(environment, tmp_path, "execute", "in.ipynb", "--output=first.ipynb")
    assert printed(read(tmp_path / "first.ipynb")) == "False\n"
    folder = tmp_path / f"carrel-fork-{os.getuid()}"
    eventually(lambda: any(folder.glob("*/fork")))
    jupyter(environment, tmp_path, "execute", "in.ipynb", "--output=second.ipynb")
    assert printed(read(tmp_path / "second.ipynb")) == "True\n"
    words = ("console", "--kernel=carrel-fork", "--simple-prompt", "-y")
    given = f"{PARENT}\nexit\n"
    try:
        shown = jupyter(environment, tmp_path, *words, given=given, seconds=60)
    except subprocess.TimeoutExpired:
        # It waits for ever if the kernel is idle before the console receives its messages.
        shown = jupyter(environment, tmp_path, *words, given=given)
    assert "True" in shown
    assert folder.stat().st_mode & 0o077 == 0
