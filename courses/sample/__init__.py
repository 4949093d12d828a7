"""The sample course: notebooks that the demo puts into the homes of its accounts."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ...hub.folders import add_file


def copy_into(home: Path) -> None:
    """Put the sample notebooks into a home; a file that is there already stays as it is."""
    for source in files(__package__).iterdir():
        if source.name.endswith(".ipynb"):
            add_file(home, source.name, source.read_bytes())
