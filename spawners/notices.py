"""The notice in an attempt's folder: whoever is asked to go reads there why, and until when."""

from __future__ import annotations

import json
from pathlib import Path

from ..hub.config import write_private
from ..hub.ports.notices import Notice
from .runner.order import NOTICE


def write(folder: Path, notice: Notice) -> bool:
    """Returns whether it was not there already; a folder that is gone needs none."""
    text = json.dumps(notice.told)
    path = folder / NOTICE
    if not folder.is_dir() or (path.exists() and path.read_text() == text):
        return False
    write_private(path, text)
    return True


def remove(folder: Path) -> None:
    (folder / NOTICE).unlink(missing_ok=True)
