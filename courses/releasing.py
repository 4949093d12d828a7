"""From a teacher's files to a version that students can get."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..hub.errors import InvalidInput, Unavailable
from .parcels import Parcel

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Attributes:
    files: what students get.
    source: what the teacher wrote.
    warnings: what the teacher should look at.
    """

    files: Parcel
    source: Parcel
    warnings: tuple[str, ...] = ()


def made_ready(assignment: str, source: Parcel) -> Ready:
    """Solutions and hidden tests stripped. Nothing is stored here.

    Raises:
        InvalidInput: what nbgrader could not make a hand-out of, in sentences.
        Unavailable: nbgrader is not installed beside the service.
    """
    try:
        from .handout import prepare  # noqa: PLC0415  # takes a second, and nbgrader is an extra
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"Assignments cannot be released here: {error.name} is missing.",
            accepted="An administrator installs it with: pip install 'carrel[courses]'",
        ) from error
    prepared = prepare(assignment, source.files)
    files = Parcel.of(prepared.files.items())
    return Ready(files=files, source=source, warnings=prepared.warnings)


def check_assignment_name(name: str) -> None:
    """Raises InvalidInput."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a name that an assignment can have.",
            accepted="It has 1 to 64 letters, digits, dots, underscores and hyphens.",
        )
