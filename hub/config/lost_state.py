"""Refuse to start an empty site where the database of an existing site was lost.

Without this check, a site with a missing or damaged database would start empty, and everything that
it then stores would conflict with a restore.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from ..errors import Refused
from .state_folder import StateFolder

_HEADER = b"SQLite format 3\0"
_HEADER_BYTES = 100


def refuse_lost_state(state: StateFolder) -> None:
    """Raise Refused if databases are lost or damaged, or a restore was interrupted."""
    _refuse_interrupted_restore(state)
    for database in (state.database, state.accounts, state.hub_database):
        problem = _damage(database)
        if problem:
            raise Refused(f"The database {database} {problem}.", accepted=_remedy(state))
    if not _has_content(state.database) and (found := _evidence_of_use(state)):
        what = "is empty" if state.database.exists() else "is missing"
        raise Refused(
            f"The database {state.database} {what}, but the site has been used: {found}.",
            accepted=_remedy(state),
        )


def _refuse_interrupted_restore(state: StateFolder) -> None:
    root = state.root
    if root.exists():
        return
    earlier = sorted(root.parent.glob(f"{root.name}.before-*")) if root.parent.is_dir() else []
    if not earlier:
        return
    restored = root.with_name(f"{root.name}.restoring")
    also = f" and the restored state is in {restored}" if restored.exists() else ""
    raise Refused(
        f"{root} is missing: a restore was interrupted. The earlier state is in {earlier[-1]}"
        f"{also}.",
        accepted=f"Move the earlier state back with mv {shlex.quote(str(earlier[-1]))} "
        f"{shlex.quote(str(root))}, remove {restored.name} if it exists, and restore again.",
    )


def _damage(database: Path) -> str:
    """Return the damage of a SQLite file; empty if the file is sound, empty or missing."""
    if not _has_content(database):
        return ""
    with database.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_HEADER) or len(header) < _HEADER_BYTES:
        return "is not a database"
    # https://sqlite.org/fileformat.html#the_database_header: the page size is at byte 16 (1 means
    # 65,536), the number of pages at 28; it is valid if the counters at 24 and 92 are equal.
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    expected = pages * (65536 if page == 1 else page)
    if header[24:28] == header[92:96] and database.stat().st_size < expected:
        return f"is truncated: {database.stat().st_size} of {expected} bytes are left"
    return ""


def _evidence_of_use(state: StateFolder) -> str:
    """Return the evidence that the site was used; empty for a new site.

    Only folders that the service alone writes to count: administrators may prepare the others
    before the first start.
    """
    found = [
        f"{folder} holds {len(names)} entries"
        for folder in (state.outputs, state.blobs)
        if (names := _names(folder))
    ]
    return " and ".join(found)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _remedy(state: StateFolder) -> str:
    return (
        "Restore the newest backup with carrel restore BACKUP --replace --state "
        f"{shlex.quote(str(state.root))} (see the guide on backups), or put the database back. "
        "Nothing was changed."
    )
