"""The notice in an attempt's folder: whoever is asked to go reads there why, and until when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ...hub.attempts.spec import NOTICE
from ...hub.files.safe_fs import Owner, opened_file, write_into
from ...hub.records.notices import StopNotice

_LONGEST: Final = 1 << 16


def write(folder: Path, notice: StopNotice, *, owner: Owner | None = None) -> bool:
    """Returns whether it was not there already; a folder that is gone needs none."""
    text = json.dumps(notice.told)
    if not folder.is_dir() or _there(folder) == text.encode():
        return False
    write_into(folder, NOTICE, text, owner=owner)
    return True


def _there(folder: Path) -> bytes:
    try:
        with opened_file(folder, NOTICE) as file:
            return file.read(_LONGEST)
    except OSError:
        return b""


def remove(folder: Path) -> None:
    (folder / NOTICE).unlink(missing_ok=True)
