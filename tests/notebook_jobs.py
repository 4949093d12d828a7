"""The packages that sessions have and the hub's environment must not have: jupyter-scheduler's.

``make test`` installs them into a folder of their own (``python -m tests.notebook_jobs``), so that
tests can load them beside the packages that both environments have.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

from .requirements import need

_ROOT = Path(__file__).parents[1]
SESSION = _ROOT / "images" / "base" / "requirements.txt"
"""The lock file of the environment of sessions."""
HUB = _ROOT / "requirements" / "up.txt"
_TESTS = _ROOT / "requirements" / "dev.txt"
_FOLDER = Path(sys.prefix) / "share" / "carrel" / "notebook-jobs"


def locked(lock: Path) -> dict[str, str]:
    """Return the entries of a lock file, with their hashes, by name of the package."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.read_text().splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            name = line.partition("==")[0]
            found[name] = ""
        found[name] += line
    return found


def added() -> dict[str, str]:
    """Return the entries of packages that the environment of the tests does not have."""
    present = locked(HUB) | locked(_TESTS)
    return {name: entry for name, entry in locked(SESSION).items() if name not in present}


def packages() -> Path:
    """Return the folder of the packages; its ``etc`` and ``share`` are Jupyter's."""
    there = (_FOLDER / "jupyter_scheduler").is_dir()
    need("notebook-jobs", there, "jupyter-scheduler is missing: python -m tests.notebook_jobs")
    return _FOLDER


def install() -> None:
    with NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(added().values()))
        file.flush()
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        only = ["--no-deps", "--require-hashes", "--upgrade", "--target", str(_FOLDER)]
        subprocess.run([*pip, *only, "-r", file.name], check=True)


if __name__ == "__main__":
    install()
