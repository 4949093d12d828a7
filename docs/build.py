"""Build the documentation into ``hub/web/help``, where Carrel serves it and the wheel includes it.

    python docs/build.py

Nothing is done if no source has changed since the last build. Warnings are errors.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TARGET = ROOT / "hub" / "web" / "help"
_WORK = DOCS / "_build"
_DIGEST = _WORK / "digest"
_UNUSED = (".buildinfo", "_sources", "objects.inv")
"""What Sphinx writes for itself and for other projects."""


def build() -> None:
    """Build the documentation if a source has changed.

    Raises:
        subprocess.CalledProcessError: Sphinx reported an error or a warning, on stderr.
    """
    digest = _digest_of_sources()
    if (TARGET / "index.html").is_file() and _DIGEST.is_file() and _DIGEST.read_text() == digest:
        return
    made = _WORK / "html"
    shutil.rmtree(_WORK, ignore_errors=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto"),
            *("-b", "html", "-d", str(_WORK / "doctrees"), str(DOCS), str(made)),
        ],
        check=True,
    )
    for name in _UNUSED:
        _remove(made / name)
    shutil.rmtree(TARGET, ignore_errors=True)
    made.rename(TARGET)
    _DIGEST.write_text(digest)


def _digest_of_sources() -> str:
    found = hashlib.sha256()
    pages = (path for path in DOCS.rglob("*") if path.is_file() and _WORK not in path.parents)
    for path in sorted([*pages, ROOT / "pyproject.toml"]):
        found.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
