"""Prepare the build context: the recipe, a wheel of this Carrel, and the folder ``packages``.

``packages`` contains the lock file, a site's wheels, and the script that installs them. The wheel
of Carrel is reproducible: an unchanged build comes from the engine's cache, with the same digest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Final

from ..hub.errors import ImageFailed, InvalidInput
from .recipes import Recipe

ROOT: Final = Path(__file__).parents[1]
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_EPOCH = "315532800"
"""The same date as ``SOURCE_DATE_EPOCH``: the earliest date that a zip file can store."""
_PACKAGES: Final = "packages"
_INSTALL: Final = Path(__file__).with_name("install.sh")
_WHEEL = "source=wheel,"
"""Part of a Dockerfile that installs Carrel."""


@contextmanager
def context(recipe: Recipe, variant: str, wheelhouse: Path | None) -> Iterator[Path]:
    """Yield a temporary folder with all files that the Dockerfile may use.

    Raises:
        InvalidInput: the lock file or the folder of wheels is missing.
        ImageFailed: the wheel of Carrel could not be built.
    """
    lock = recipe.lock(variant)
    if not lock.is_file():
        raise InvalidInput(f"{lock} is missing.", accepted="Add a lock file with hashes for pip.")
    with tempfile.TemporaryDirectory(prefix="carrel-image-") as name:
        folder = Path(name)
        for file in recipe.folder.iterdir():
            if file.is_file():
                shutil.copyfile(file, folder / file.name)
        packages = folder / _PACKAGES
        (packages / "wheels").mkdir(parents=True)
        shutil.copyfile(lock, packages / "requirements.txt")
        shutil.copyfile(_INSTALL, packages / _INSTALL.name)
        if wheelhouse is not None:
            _copy_wheels(wheelhouse, packages / "wheels")
        if _WHEEL in (folder / "Dockerfile").read_text(encoding="utf-8"):
            (folder / "wheel").mkdir()
            wheel_of_carrel(folder / "wheel")
        yield folder


def _copy_wheels(wheelhouse: Path, target: Path) -> None:
    found = sorted(wheelhouse.glob("*.whl"))
    if not found:
        raise InvalidInput(
            f"There is no wheel in {wheelhouse}.", accepted="A folder with files named *.whl."
        )
    for file in found:
        shutil.copyfile(file, target / file.name)


def wheel_of_carrel(target: Path) -> Path:
    """Build a wheel of the running Carrel, from the checkout or from the installed files."""
    if (ROOT / "pyproject.toml").is_file():
        return _from_checkout(target)
    return _from_installed(target)


def _from_checkout(target: Path) -> Path:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory(prefix="carrel-source-") as name:
        # In a copy, because a build leaves folders behind and may run in parallel with another.
        source = Path(name) / "carrel"
        _copy_sources(source)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pip", "wheel", *options, "--wheel-dir", target, source],
            env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH},
            capture_output=True,
            text=True,
            check=False,
        )
    found = next(iter(target.glob("carrel-*.whl")), None)
    if done.returncode or found is None:
        raise ImageFailed(
            f"No wheel of this Carrel could be generated: {done.stderr.strip()[-400:]}",
            accepted="It needs setuptools in the environment that runs carrel.",
        )
    return found


def _copy_sources(target: Path) -> None:
    """Copy the packages that pyproject.toml lists, and the files of the top folder."""
    tops = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and (path / "__init__.py").is_file() and path.name != "tests"
    }
    target.mkdir()
    for top in sorted(tops):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules", "*.egg-info")
        shutil.copytree(ROOT / top, target / top, ignore=ignored, symlinks=True)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copyfile(path, target / path.name)


def _from_installed(target: Path) -> Path:
    """Pack the installed files into a wheel again."""
    carrel = metadata.distribution("carrel")
    wheel = target / f"carrel-{carrel.version}-py3-none-any.whl"
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in sorted(_installed(carrel)):
            digest = urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(content)}")
            packed.writestr(_entry(name), content)
        record = f"carrel-{carrel.version}.dist-info/RECORD"
        packed.writestr(_entry(record), "\n".join([*lines, f"{record},,", ""]))
    return wheel


def _installed(carrel: metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    # Generated at installation; the installation in the image generates them again.
    generated = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    for file in carrel.files or ():
        name = PurePosixPath(file)
        outside = ".." in name.parts or name.is_absolute()
        if not (outside or name.suffix == ".pyc" or name.name in generated):
            yield str(name), Path(str(file.locate())).read_bytes()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_DATE)
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry
