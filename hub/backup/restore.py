"""``carrel restore``: a backup becomes a state folder, after every byte of it was checked.

Nothing is changed before the whole backup has been found right, and the state folder appears
at once, by a rename; one that was there is moved aside. The database comes back with requests
that ran when it was copied. Their processes are not the restored site's:

- where the same state folder is restored, nothing of it may run, and this is refused;
- elsewhere, the original may live on. Its processes carry its own folder as ``CARREL_STATE``,
  and an engine does not see those of another folder, whatever lease they name. The ports
  between the processes are chosen anew, so that no attempt of the original reports here.

So the loop's first look finds no process: sessions end as failed, jobs end as what their
journal says, or as lost, and are tried again where they have retries. All of them are charged
up to their last sign of life, and the tokens of their attempts are fenced as ever.
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
    """Which backup becomes which state folder.

    Attributes:
        replace: move a state folder that is there aside.
        drained: nothing starts in it until an administrator lifts the drains.
        who: as the audit list names them.
    """

    backup: Path
    state: StateFolder
    replace: bool = False
    drained: bool = False
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """``aside``: where the former state folder lies now, if there was one."""

    manifest: Manifest
    aside: Path | None


def verify(backup: Path, progress: CopyProgress) -> Manifest:
    """Check the manifest, the tables' version, and every file of a backup.

    Raises:
        InvalidInput: it is none, or something in it is missing or changed.
        Refused: it was made by a newer Carrel.
    """
    manifest = Manifest.read(backup)
    if manifest.revision not in known_revisions():
        raise Refused(
            f"The backup was made by a newer Carrel ({manifest.version}, tables "
            f"{manifest.revision}).",
            accepted="Restore it with that one.",
        )
    with progress.bar("Checking", manifest.size) as advance:
        wrong = [one for one in manifest.files if not _as_noted(backup / STATE, one, advance)]
    if wrong:
        names = ", ".join(printable(one.path) for one in wrong[:_SHOWN])
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InvalidInput(
            f"The backup is damaged: {names}{more} missing or not as written.",
            accepted="Take another backup.",
        )
    copied = backup / STATE / "carrel.db"
    if not copied.exists() or database.revision(copied) != manifest.revision:
        raise InvalidInput("The backup's carrel.db is not what its manifest says.")
    return manifest


def restore(options: RestoreOptions, progress: CopyProgress, clock: Clock) -> Restored:
    """Raises what ``verify`` does, and:

    StateInUse: the state folder runs, or something runs on its behalf.
    Conflict: it is not empty, and is not to be replaced.
    BackupFailed: it could not be written.
    """
    state = options.state
    with _at_rest(state):
        if _holds_something(state.root) and not options.replace:
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
            _settle_in(draft, options, manifest, clock)
            _set_modes(draft, manifest)
            os.sync()
            aside = _put_in_place(draft, state.root, clock)
    return Restored(manifest=manifest, aside=aside)


def _as_noted(folder: Path, entry: ManifestEntry, advance: Advance) -> bool:
    try:
        return hashed(folder / entry.path, advance) == (entry.size, entry.sha256)
    except OSError:
        return False


# -- what is there -------------------------------------------------------------------------


@contextmanager
def _at_rest(state: StateFolder) -> Iterator[None]:
    """Holds the folder, so that nothing starts there meanwhile. Raises StateInUse."""
    with ExitStack() as held:
        if state.run.is_dir():
            held.enter_context(locked(state))
        notes = [ProcessId.load(state.run / f"{name}.json") for name in NAMES]
        parts = [note.pid for note in notes if note is not None and note.alive]
        # These carry the folder's name, even where the folder itself is gone.
        mine = os.getpid()
        workers = [one.process.pid for one in leased(state.root) if one.process.pid != mine]
        if parts or workers:
            pids = ", ".join(map(str, sorted([*parts, *workers])[:10]))
            raise StateInUse(
                f"Parts, sessions or jobs of {state.root} still run (processes {pids}).",
                accepted=f"Stop them first: carrel down --state {shlex.quote(str(state.root))}",
            )
        yield


def _holds_something(root: Path) -> bool:
    return root.exists() and (not root.is_dir() or any(root.iterdir()))


# -- what comes ----------------------------------------------------------------------------


def _fill(draft: Path, source: Path, manifest: Manifest, advance: Advance) -> None:
    """Folders and files first, so that no link can lead one of them elsewhere."""
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
    """Last, and from below: some folders may not be written to any more."""
    for entry in reversed(manifest.entries):
        if entry.kind is not EntryKind.LINK:
            (draft / entry.path).chmod(entry.mode)
            os.utime(draft / entry.path, (entry.modified, entry.modified))


def _settle_in(draft: Path, options: RestoreOptions, manifest: Manifest, clock: Clock) -> None:
    restored = StateFolder(root=draft)
    restored.create()
    if manifest.state != str(options.state.root):
        settings = Settings.load(restored)
        elsewhere = settings.changed(hub_port=0, service_port=0, proxy_api_port=0)
        elsewhere.changed(docker_subnets="").save(restored)
    if options.drained:
        _drain(restored, options.who, clock())


def _drain(state: StateFolder, who: str, now: float) -> None:
    """Nothing starts, and what was granted and had not begun goes back into the queue."""
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
    if _holds_something(root):
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
