"""Write files of one account: private ones, and one that an administrator also edits."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write a 0600 file atomically."""
    draft = path.with_name(path.name + ".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def rewrite(path: Path, text: str) -> None:
    """Write a file atomically; one that exists keeps its owner and mode, and a link its target."""
    target = path.resolve()
    draft = target.with_name(target.name + ".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if target.exists():
            about = target.stat()
            os.fchmod(descriptor, stat.S_IMODE(about.st_mode))
            if os.geteuid() == 0:
                os.fchown(descriptor, about.st_uid, about.st_gid)
        file.flush()
        os.fsync(descriptor)
    draft.replace(target)
