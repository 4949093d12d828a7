"""Find Java and its version, so that a missing or old one is refused with a sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...hub.errors import Unavailable

OLDEST: Final = 17
"""Spark 4 starts with none that is older."""
_SECONDS: Final = 30.0
_HELP: Final = (
    f"Spark needs Java {OLDEST}: use the image spark, or on Debian install openjdk-17-jre-headless."
)


def check(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse an environment in which Spark finds no usable Java.

    Raises:
        Unavailable: there is no Java, it does not start, or it is too old.
    """
    program = _program(environment)
    if program is None:
        raise Unavailable("Java was not found.", accepted=_HELP)
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"Java ({program}) does not start: {error}.", accepted=_HELP) from error
    found = version(done.stderr + done.stdout)
    if done.returncode or found is None:
        raise Unavailable(f"Java ({program}) does not say its version.", accepted=_HELP)
    if found < OLDEST:
        raise Unavailable(f"Java {found} ({program}) is too old.", accepted=_HELP)


def version(text: str) -> int | None:
    """Return the main version from what ``java -version`` prints: 8 of 1.8.0, 17 of 17.0.15."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _program(environment: Mapping[str, str]) -> str | None:
    """Return the program that Spark starts: that of JAVA_HOME, else the one in PATH."""
    if home := environment.get("JAVA_HOME"):
        program = Path(home) / "bin" / "java"
        return str(program) if os.access(program, os.X_OK) else None
    return shutil.which("java", path=environment.get("PATH"))
