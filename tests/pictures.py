"""Retake the pictures of the documentation from the current pages: ``python -m tests.pictures``.

They are screenshots that two tests leave among the artefacts, under the same names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
TUTORIAL = "tests/e2e/test_docs.py::test_pictures_of_the_tutorial"
PAGE = "tests/e2e/test_every_page.py::test_a_page_is_accessible"


def pictures() -> list[Path]:
    """Return the pictures in the documentation's folder of images."""
    return sorted(path.relative_to(IMAGES) for path in IMAGES.rglob("*.png"))


def taken_by(picture: Path) -> str:
    """Return the test that takes a picture; a page's name is before the size and the theme."""
    if picture.parent.name != "pages":
        return TUTORIAL
    return f"{PAGE}[{picture.stem.rsplit('-', 2)[0]}]"


def take(wanted: Iterable[Path], artefacts: Path) -> int:
    """Run the tests and copy their screenshots; return the exit status."""
    tests = sorted({taken_by(picture) for picture in wanted})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *tests],
        cwd=ROOT,
        env={**os.environ, "CARREL_ARTEFACTS": str(artefacts)},
        check=False,
    )
    if done.returncode:
        print("Nothing was copied: a test that takes pictures has failed.", file=sys.stderr)
        return done.returncode
    for picture in wanted:
        shutil.copyfile(artefacts / picture, IMAGES / picture)
        print(IMAGES / picture)
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="carrel-pictures-") as folder:
        sys.exit(take(pictures(), Path(folder)))
