"""Write what was fetched to a file of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ...errors import InvalidInput
from ...files.csv_table import Cell, csv_of
from ...files.filenames import draft_beside

F = TypeVar("F", bound=Callable[..., Any])


def csv_option(help_text: str) -> Callable[[F], F]:
    """Return the option ``--csv FILE``; its value is ``csv_file``, a path or None."""
    return click.option(
        "--csv",
        "csv_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help=help_text,
    )


def write_csv(path: Path, rows: Iterable[Sequence[Cell]]) -> None:
    """Write rows as CSV; the file may be a device such as /dev/stdout.

    Raises:
        InvalidInput: it cannot be written.
    """
    try:
        path.write_text(csv_of(rows), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error


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
