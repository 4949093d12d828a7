"""Write the preemption notice into an attempt's folder, where the job reads reason and deadline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ...hub.attempts.spec import NOTICE
from ...hub.files.safe_fs import Owner, opened_file, write_into
from ...hub.records.notices import StopNotice

_LONGEST: Final = 1 << 16


def write(folder: Path, notice: StopNotice, *, owner: Owner | None = None) -> bool:
    """Write the notice unless it is there already; return whether it was written.

    A folder that no longer exists needs no notice.
    """
    text = json.dumps(notice.data)
    if not folder.is_dir() or _current(folder) == text.encode():
        return False
    write_into(folder, NOTICE, text, owner=owner)
    return True


def _current(folder: Path) -> bytes:
    try:
        with opened_file(folder, NOTICE) as file:
            return file.read(_LONGEST)
    except OSError:
        return b""


def remove(folder: Path) -> None:
    """Remove the notice, if there is one."""
    (folder / NOTICE).unlink(missing_ok=True)
