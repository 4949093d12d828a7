"""The sample course: notebooks that the demo puts into the homes of its accounts."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path


def copy_into(home: Path) -> None:
    """Put the sample notebooks into a home; a file that is there already stays as it is."""
    for source in files(__package__).iterdir():
        target = home / source.name
        if source.name.endswith(".ipynb") and not target.exists():
            target.write_bytes(source.read_bytes())
            if os.geteuid() == 0:
                os.chown(target, home.stat().st_uid, home.stat().st_gid)
