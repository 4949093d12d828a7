"""Describe the environment of an attempt for its receipt: interpreter, packages, driver, git."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ....hub.records.json_value import Json

MOST_PACKAGES: Final = 2000
_GIT_SECONDS: Final = 2.0
_DRIVERS: Final = (Path("/proc/driver/nvidia/version"), Path("/sys/module/amdgpu/version"))
_LONGEST: Final = 200


def described() -> dict[str, Json]:
    """Return interpreter, system, packages and drivers, by what is quick to read."""
    packages = sorted(set(_packages()))
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": list(packages[:MOST_PACKAGES]),
        "drivers": list(_drivers()),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "")[:_LONGEST],
    }


def _packages() -> Iterator[str]:
    """Yield ``NAME==VERSION`` from the names of folders, without reading their metadata."""
    for place in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(place or ".") as entries:
            for entry in entries:
                stem, kind = os.path.splitext(entry.name)
                name, _, version = stem.partition("-")
                if kind == ".dist-info" and version:
                    yield f"{name.replace('_', '-').lower()}=={version}"


def _drivers() -> Iterator[str]:
    for path in _DRIVERS:
        with suppress(OSError, UnicodeDecodeError):
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            yield " ".join(first.split())[:_LONGEST]


def git_state(folder: Path, home: Path) -> Mapping[str, Json] | None:
    """Return the commit of the repository of a folder, and whether its files differ from it.

    Only a repository in the home is looked for. None: there is none, or git is not installed.
    """
    above = [folder, *folder.parents]
    inside = [path for path in above if path.is_relative_to(home)]
    if not any((path / ".git").exists() for path in inside) or shutil.which("git") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit.strip(), "differs": None if changed is None else bool(changed)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
