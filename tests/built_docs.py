"""The built documentation for tests: built by one worker, if a source has changed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from carrel.hub.messages.help_pages import BUILT

from .source_tree import ROOT

BUILDER = ROOT / "docs" / "build.py"


def ensure() -> Path:
    """Build the documentation as `make docs` does it; return its folder."""
    with BUILDER.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, str(BUILDER)], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return BUILT
