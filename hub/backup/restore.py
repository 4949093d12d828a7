"""``carrel restore``: creates a state folder from a verified backup.

Nothing changes before the whole backup is verified. The state folder appears atomically, by a
rename; an existing one is moved aside. The restored database contains requests that ran when it
was copied. Their processes do not belong to the restored site:

- If the same state folder is restored, the restore is refused while any of its processes run.
- Elsewhere, the original site may still run. Its processes have its own folder as
  ``CARREL_STATE``, and an engine ignores processes of another folder, whatever their lease. The
  internal ports are chosen anew, so that no attempt of the original site reports here.

So the first reconciliation finds no process: sessions fail; jobs get the result in their
journal, or are lost and retried if they have retries left. All are charged up to their last
heartbeat, and the tokens of their attempts are fenced as usual.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..errors import BackupFailed, Conflict, InvalidInput, Refused, StateInUse
from ..interfaces.clock import Clock
from ..records.audit import AuditAction, AuditEntry
from ..records.requests import RequestFilter
from ..scheduling.model.snapshot import Mark, MarkKind
from ..scheduling.model.states import State
from ..store import open_store
from ..store.sql.database import known_revisions
from ..supervisor.lock import locked
from ..supervisor.processes import ProcessId, leased
from ..supervisor.stale import NAMES
from ..transitions import lifecycle
from . import database
from .copier import Advance, CopyProgress, copy_stream, hashed
from .manifest import STATE, EntryKind, Manifest, ManifestEntry, printable
from .staging import drafted

_SHOWN = 3
_WHY_DRAINED = "restored from a backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """The source and target of a restore.

    Attributes:
        replace: move an existing state folder aside.
        drained: drain all nodes, so that no request starts until an administrator undrains them.
        who: the administrator's name in the audit log.
    """

    backup: Path
    state: StateFolder
    replace: bool = False
    drained: bool = False
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """``aside``: the new path of the former state folder, if there was one."""

    manifest: Manifest
    aside: Path | None


def verify(backup: Path, progress: CopyProgress) -> Manifest:
    """Check the manifest, the revision of the tables, and every file of a backup.

    Raises:
        InvalidInput: it is not a backup, or a file is missing or changed.
        Refused: it was made by a newer Carrel.
    """
    manifest = Manifest.read(backup)
    if manifest.revision not in known_revisions():
        raise Refused(
            f"The backup was made by a newer Carrel ({manifest.version}, tables "
            f"{manifest.revision}).",
            accepted="Restore it with that version.",
        )
    with progress.bar("Checking", manifest.size) as advance:
        damaged = [file for file in manifest.files if not _intact(backup / STATE, file, advance)]
    if damaged:
        names = ", ".join(printable(file.path) for file in damaged[:_SHOWN])
        more = f" and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
        raise InvalidInput(
            f"The backup is damaged: {names}{more} missing or changed.",
            accepted="Use another backup.",
        )
    copied = backup / STATE / "carrel.db"
    if not copied.exists() or database.revision(copied) != manifest.revision:
        raise InvalidInput("The backup's carrel.db does not match the manifest.")
    return manifest


def restore(options: RestoreOptions, progress: CopyProgress, clock: Clock) -> Restored:
    """Verify a backup and create the state folder from it.

    Raises:
        InvalidInput, Refused: as ``verify`` does.
        StateInUse: processes of the state folder run.
        Conflict: the state folder is not empty, and ``replace`` is not set.
        BackupFailed: it could not be written.
    """
    state = options.state
    with _exclusive(state):
        if _occupied(state.root) and not options.replace:
            raise Conflict(
                f"{state.root} exists and is not empty.",
                accepted="Name another folder with --state, or move this one aside with --replace.",
            )
        manifest = verify(options.backup, progress)
        with drafted(
            state.root,
            "restoring",
            under_way="a restore is under way",
            failed="The state folder was not restored",
        ) as draft:
            with progress.bar("Restoring", manifest.size) as advance:
                _fill(draft, options.backup / STATE, manifest, advance)
            _adjust(draft, options, manifest, clock)
            _set_modes(draft, manifest)
            os.sync()
            aside = _put_in_place(draft, state.root, clock)
    return Restored(manifest=manifest, aside=aside)


def _intact(folder: Path, entry: ManifestEntry, advance: Advance) -> bool:
    try:
        return hashed(folder / entry.path, advance) == (entry.size, entry.sha256)
    except OSError:
        return False


# -- the existing state folder -------------------------------------------------------------


@contextmanager
def _exclusive(state: StateFolder) -> Iterator[None]:
    """Lock the folder, so that no process starts there meanwhile. Raises StateInUse."""
    with ExitStack() as held:
        if state.run.is_dir():
            held.enter_context(locked(state))
        notes = [ProcessId.load(state.run / f"{name}.json") for name in NAMES]
        parts = [note.pid for note in notes if note is not None and note.alive]
        # Their environment names the folder, even if the folder itself was deleted.
        mine = os.getpid()
        workers = [found.process.pid for found in leased(state.root) if found.process.pid != mine]
        if parts or workers:
            pids = ", ".join(map(str, sorted([*parts, *workers])[:10]))
            raise StateInUse(
                f"Services, sessions or jobs of {state.root} still run (processes {pids}).",
                accepted=f"Stop them first: carrel down --state {shlex.quote(str(state.root))}",
            )
        yield


def _occupied(root: Path) -> bool:
    return root.exists() and (not root.is_dir() or any(root.iterdir()))


# -- the restored state folder -------------------------------------------------------------


def _fill(draft: Path, source: Path, manifest: Manifest, advance: Advance) -> None:
    """Copy the entries; links come last, so that no file is written through one."""
    for entry in manifest.entries:
        path = draft / entry.path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if entry.kind is EntryKind.FOLDER:
            path.mkdir(mode=0o700, exist_ok=True)
        elif entry.kind is EntryKind.FILE:
            with (source / entry.path).open("rb") as file:
                if copy_stream(file, path, advance) != (entry.size, entry.sha256):
                    raise BackupFailed(f"{printable(entry.path)} changed while it was restored.")
    for entry in manifest.entries:
        if entry.kind is EntryKind.LINK:
            (draft / entry.path).symlink_to(entry.target)


def _set_modes(draft: Path, manifest: Manifest) -> None:
    """Set permissions and times, children first: some folders become read-only."""
    for entry in reversed(manifest.entries):
        if entry.kind is not EntryKind.LINK:
            (draft / entry.path).chmod(entry.mode)
            os.utime(draft / entry.path, (entry.modified, entry.modified))


def _adjust(draft: Path, options: RestoreOptions, manifest: Manifest, clock: Clock) -> None:
    """Reset settings that belong to the original folder, and drain the nodes if requested."""
    restored = StateFolder(root=draft)
    restored.create()
    if manifest.state != str(options.state.root):
        settings = Settings.load(restored)
        elsewhere = settings.changed(hub_port=0, service_port=0, proxy_api_port=0)
        elsewhere.changed(docker_subnets="").save(restored)
    if options.drained:
        _drain(restored, options.who, clock())


def _drain(state: StateFolder, who: str, now: float) -> None:
    """Drain all nodes, and return granted requests that have not started to the queue."""
    with closing(open_store(state.database)) as store:
        for node in store.nodes():
            mark = Mark(target=node, kind=MarkKind.DRAIN, since=now, why=_WHY_DRAINED, by=who)
            change = AuditEntry(
                at=now, who=who, action=AuditAction.DRAIN, target=node, why=_WHY_DRAINED
            )
            store.put_mark(mark, change=change)
        for request in store.requests(_granted()):
            if request.lease is not None:
                store.apply_to_lease(
                    request.lease.id,
                    lifecycle.give_back,
                    now=now,
                    charge_until=request.lease.granted_at,
                )


def _granted() -> RequestFilter:
    return RequestFilter(states=frozenset({State.GRANTED}), limit=100_000)


def _put_in_place(draft: Path, root: Path, clock: Clock) -> Path | None:
    aside = None
    if _occupied(root):
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(clock()))
        aside = root.with_name(f"{root.name}.before-{stamp}")
        root.rename(aside)
    try:
        draft.rename(root)
    except OSError:
        if aside is not None:
            aside.rename(root)
        raise
    return aside
