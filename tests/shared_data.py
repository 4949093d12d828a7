"""The folder of traces, job files and cases that tests may read: CARREL_SHARED."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared"


def shared_path(name: str) -> Path:
    """Where a shared file or folder lies, or would lie: below CARREL_SHARED, else beside the
    checkout."""
    return Path(os.environ.get("CARREL_SHARED") or _BESIDE) / name
