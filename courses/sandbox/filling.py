"""The files of a cage's working folder, as far as their names stay in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from ...hub.errors import InvalidInput, TooLarge
from .interface import Limits


def checked(files: Mapping[str, bytes], limits: Limits) -> Mapping[str, bytes]:
    """Raises InvalidInput, TooLarge."""
    for name in files:
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or "\0" in name or name == ".":
            raise InvalidInput(
                f"{name[:100]!r} is no name for a file of a submission.",
                accepted="A relative path that stays in its folder.",
            )
    size = sum(map(len, files.values()))
    if size > limits.disk_bytes:
        raise TooLarge(
            f"The files of the submission have {size} bytes.",
            accepted=f"Up to {limits.disk_bytes} bytes together.",
        )
    return files
