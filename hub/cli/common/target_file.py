"""Write what was fetched to a file of the user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...errors import InvalidInput
from ...files.filenames import draft_beside


def write_file(path: Path, parts: Iterable[bytes], *, force: bool) -> None:
    """Write a file completely or not at all, also if the connection breaks.

    Raises:
        InvalidInput: it exists, unless with ``force``, or it cannot be written.
    """
    if path.exists() and not force:
        raise taken_name(path)
    unfinished = draft_beside(path)
    try:
        with unfinished.open("xb") as file:
            for part in parts:
                file.write(part)
        unfinished.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def taken_name(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} already exists.", accepted="Give another name with -o, or use --force."
    )
