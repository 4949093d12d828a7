"""Names of roles in Carrel for those of a job file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...records.gangs import MAX_ROLES
from .yaml_source import MalformedJobFile

_OWN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_LONGEST: Final = 32


def role_names(file: str, lines: Mapping[str, int], line: int) -> dict[str, str]:
    """Return Carrel's name for each name of a task role: ``ps_server`` becomes ``ps-server``.

    Args:
        lines: the line of each name in the file.
        line: of the list of the roles.

    Raises:
        MalformedJobFile: there is none, there are too many, or a name is invalid or that of two.
    """
    if not lines:
        raise MalformedJobFile(file, line, "The job has no task roles.", accepted="At least one.")
    if len(lines) > MAX_ROLES:
        raise MalformedJobFile(
            file, line, f"The job has {len(lines):,} task roles.",
            accepted=f"At most {MAX_ROLES}; a role can have several instances.",
        )  # fmt: skip
    found: dict[str, str] = {}
    for own, at in lines.items():
        if not _OWN.fullmatch(own):
            raise MalformedJobFile(
                file, at, f"The name {own[:80]!r} of a task role is not valid.",
                accepted="Letters, digits and underscores, and no digit first.",
            )  # fmt: skip
        name = own.lower().replace("_", "-").strip("-")
        if not 1 <= len(name) <= _LONGEST:
            raise MalformedJobFile(
                file, at, f"The name {own[:80]!r} of a task role cannot be kept.",
                accepted=f"1 to {_LONGEST} letters, digits and underscores.",
            )  # fmt: skip
        same = next((other for other, taken in found.items() if taken == name), None)
        if same is not None:
            raise MalformedJobFile(
                file, at,
                f"The task roles {same} (line {lines[same]}) and {own} would both be {name!r}.",
                accepted="Names that differ in more than capitals and underscores.",
            )  # fmt: skip
        found[own] = name
    return found


def own_name(name: str) -> str:
    """Return a name for another platform for a name of Carrel: ``ps-server``, ``ps_server``."""
    changed = name.replace("-", "_")
    return f"_{changed}" if changed[0].isdigit() else changed
