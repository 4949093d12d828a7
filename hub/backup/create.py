"""``carrel backup``: copies the data of a site beside the running service.

The order of the steps makes the copy consistent. Carrel's database comes first, as of one
moment, after the head of the log that it extends; the files that it refers to follow:

1. log-head.json; carrel.db by SQLite's online backup: consistent, and without a lock
2. hub/             JupyterHub's database and the accounts likewise; the cookie secret
3. settings, tokens between the processes, the signing key, the site's jupyterhub_config.py
4. outputs/         only of the requests and attempts in the copied database
5. courses/         releases, submissions, and the shared files of courses
6. homes/           only on request, like the keys of encrypted values

An input is on disk before its request is in the database, and the contents of a submission
before the submission; neither these nor outputs are deleted. So all files that the copied
database refers to exist. Later data is left out, except the outputs that a running attempt had
written by the time they were copied: after a restore these are read like the journal of an
attempt whose service was down.

A backup appears atomically: everything is written to ``DIR.partial``, synced, completed with
the manifest, and renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ... import __version__
from ..config.state_folder import StateFolder
from ..errors import BackupFailed, Conflict, InvalidInput
from ..files.safe_fs import to_disk
from ..interfaces.clock import Clock
from ..messages.units import size as sized
from ..records.audit import AuditAction, AuditEntry
from . import database
from .copier import SQLITE_COMPANIONS, Copier, CopyProgress, is_database, size_of
from .manifest import STATE, Manifest
from .staging import drafted

PARTIAL = "partial"
"""Suffix of a backup that is being written."""
_DRAFT = ".new"
"""Suffix of temporary files that are renamed once they are complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions:
    """The source and target of a backup.

    Attributes:
        homes: whether to include home folders.
        keys: whether to include the keys of encrypted values in the database.
    """

    state: StateFolder
    target: Path
    homes: bool = False
    keys: bool = False


def back_up(options: BackupOptions, progress: CopyProgress, clock: Clock) -> Manifest:
    """Write a backup; a failed one is deleted.

    Raises:
        InvalidInput: the state folder has no installation, or contains the target.
        Conflict: the target is not empty.
        BackupFailed: a file cannot be copied, or the disk is too full.
    """
    check(options)
    target = options.target.absolute()
    with drafted(
        target,
        PARTIAL,
        under_way="a backup is being written",
        failed="The backup was not written",
    ) as draft:
        manifest = _copy(options, draft, progress, clock)
        os.sync()
        manifest.write(draft)
        _put_in_place(draft, target)
    return manifest


def check(options: BackupOptions) -> None:
    """Raise InvalidInput or Conflict as ``back_up`` would, before anything is written."""
    _check_source(options.state)
    _check_target(options.state, options.target.absolute())


def record(manifest: Manifest, target: Path, *, at: float, who: str) -> AuditEntry:
    """Return the audit entry of a complete backup, by which pages list it."""
    return AuditEntry(
        at=at,
        who=who,
        action=AuditAction.BACKUP,
        target=str(target.absolute()),
        after={
            "bytes": manifest.size,
            "files": sum(1 for _ in manifest.files),
            "homes": manifest.homes,
        },
    )


def _check_source(state: StateFolder) -> None:
    if not state.settings.exists():
        raise InvalidInput(
            f"There is no Carrel installation in {state.root}.", accepted="Name it with --state."
        )
    if not state.database.exists():
        raise InvalidInput(
            f"{state.root} has no carrel.db.",
            accepted="Back up a PostgreSQL database with pg_dump.",
        )


def _check_target(state: StateFolder, target: Path) -> None:
    if target.resolve().is_relative_to(state.root):
        raise InvalidInput(
            f"{target} is in the state folder, and would be lost together with it.",
            accepted="Name a folder outside of it, if possible on another disk.",
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Conflict(
            f"{target} exists and is not empty.",
            accepted="Name a new folder, for example with the date in its name.",
        )


def _put_in_place(draft: Path, target: Path) -> None:
    for folder in (draft, draft.parent):
        to_disk(folder)
    draft.rename(target)
    to_disk(target.parent)


def _copy(options: BackupOptions, draft: Path, progress: CopyProgress, clock: Clock) -> Manifest:
    state = options.state
    total = _announce(options, draft, progress)
    copy = draft / STATE
    copy.mkdir(mode=0o700)
    with progress.bar("Copying", total) as advance:
        copier = Copier(target=copy, advance=advance)
        made_at = clock()
        # Before the database, which then extends this head.
        if state.log_head.exists():
            copier.file(state.log_head, state.log_head.name)
        copier.database(state.database, state.database.name)
        _hub(copier, state)
        for one in (state.settings, state.secrets, state.signing_key, state.jupyterhub_config):
            if one.exists():
                copier.file(one, one.name)
        if options.keys and state.encryption_keys.exists():
            copier.file(state.encryption_keys, state.encryption_keys.name)
        if state.learned_orders.is_dir():
            copier.tree(state.learned_orders, state.learned_orders.name)
        _outputs(copier, state, copy / state.database.name)
        copier.tree(state.courses, state.courses.name)
        if options.homes:
            copier.tree(state.homes, state.homes.name)
    return Manifest(
        version=__version__,
        revision=database.revision(copy / state.database.name),
        made_at=made_at,
        state=str(state.root),
        homes=options.homes,
        entries=tuple(copier.entries),
        left_out=tuple(copier.left_out),
    )


def _announce(options: BackupOptions, draft: Path, progress: CopyProgress) -> int:
    """Report the size of every part; return the total bytes to copy."""
    state = options.state
    parts = {
        "carrel.db": state.database.stat().st_size,
        "hub": size_of(state.hub),
        "outputs": size_of(state.outputs),
        "courses": size_of(state.courses),
    }
    if options.homes:
        parts["homes"] = size_of(state.homes)
    for name, size in parts.items():
        progress.say(f"{name:<10}{sized(size):>10}")
    if not options.homes:
        progress.say(f"{'homes':<10}{'left out':>10}  (--homes includes them)")
    total = sum(parts.values())
    free = shutil.disk_usage(draft).free
    if free < total:
        raise BackupFailed(
            f"{draft.parent} has {sized(free)} free; the backup needs {sized(total)}.",
            accepted="Free some space, or name a folder on another disk.",
        )
    return total


def _hub(copier: Copier, state: StateFolder) -> None:
    """Copy JupyterHub's folder: databases by online backup, the rest as files."""
    folder = state.hub.name
    (copier.target / folder).mkdir(mode=0o700)
    for found in sorted(state.hub.iterdir()):
        path = f"{folder}/{found.name}"
        if found.is_dir() and not found.is_symlink():
            copier.tree(found, path)
        elif not found.is_file() or found.name.endswith((*SQLITE_COMPANIONS, _DRAFT)):
            continue
        elif is_database(found):
            copier.database(found, path)
        else:
            copier.file(found, path)


def _outputs(copier: Copier, state: StateFolder, copied: Path) -> None:
    """Copy the input and the attempts of every request in the copied database."""
    (copier.target / state.outputs.name).mkdir(mode=0o700)
    for request, newest in sorted(database.attempts(copied).items()):
        copier.tree(state.outputs / request, f"{state.outputs.name}/{request}", _known(newest))


def _known(newest: int) -> Callable[[str], bool]:
    """Return a filter that excludes attempts that began after the database was copied."""

    def keep(name: str) -> bool:
        if name.isdecimal():
            return int(name) <= newest
        return not name.endswith(_DRAFT)

    return keep
