"""Large packages for some tests, from a lock file, beside the environment of the tests.

``make test TORCH=1``, ``make test JAX=1`` and so on install them into a folder of their own.
Without it these tests are skipped, or fail where CARREL_REQUIRE names the packages.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest

from .notebook_jobs import locked

ROOT = Path(__file__).parents[1]
_PRESENT = tuple(ROOT / "requirements" / name for name in ("up.txt", "dev.txt"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraPackages:
    """Packages that the environment of the tests does not have.

    Attributes:
        module: the main one, which names the folder, and in CARREL_REQUIRE the packages.
        title: its name for people.
        lock: with hashes, and the versions of the environment.
    """

    module: str
    title: str
    lock: Path

    @property
    def folder(self) -> Path:
        return Path(sys.prefix) / "share" / "carrel" / self.module

    def added(self) -> dict[str, str]:
        """Return the entries of packages that the environment of the tests does not have."""
        present = {name for lock in _PRESENT for name in locked(lock)}
        return {name: entry for name, entry in locked(self.lock).items() if name not in present}

    def available(self, name: str) -> bool:
        """Return whether a package can be imported, from the folder of these too.

        Raises:
            ModuleNotFoundError: it is missing, and CARREL_REQUIRE names it.
        """
        if find_spec(name) is None and (self.folder / name).is_dir():
            sys.path.append(str(self.folder))
            importlib.invalidate_caches()
        found = find_spec(name) is not None
        if not found and name in os.environ.get("CARREL_REQUIRE", "").split(","):
            raise ModuleNotFoundError(self._reason(name))
        return found

    def need(self) -> None:
        """Skip the test where the packages are missing, or fail where CARREL_REQUIRE names them."""
        if not (self.folder / self.module).is_dir() and not self.available(self.module):
            pytest.skip(self._reason(self.title))

    def load(self) -> Any:
        """Return the main module, for a test module, which is skipped where it is missing."""
        if not self.available(self.module):
            pytest.skip(self._reason(self.title), allow_module_level=True)
        return importlib.import_module(self.module)

    def _reason(self, what: str) -> str:
        return f"{what} is missing: python -m tests.{self.module}_packages"

    def install(self) -> None:
        with NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(self.added().values()))
            file.flush()
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
            only = ["--no-deps", "--no-compile", "--require-hashes", "--upgrade"]
            target = ["--target", str(self.folder), "-r", file.name]
            subprocess.run([*pip, *only, *target], check=True)
