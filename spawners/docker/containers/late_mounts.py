"""Bind folders into warm containers, which cannot be given mounts once they run.

A warm container has three empty folders where a job finds its files, and they follow mounts on the
host (``rslave``): a job's folders are bound into them when the container gets the job, with the
same rights as in a container made for it. Only root may mount, and only on the engine's machine.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ....hub.attempts.spec import BELL, ORDER
from ....hub.interfaces.backend_settings import COURSES, BackendSettings
from .template import ATTEMPT, HOMES, Mount

_CARREL: Final = str(PurePosixPath(ATTEMPT).parent)
_FOLLOWING: Final = (_CARREL, HOMES, COURSES)
_MOUNTS: Final = Path("/proc/self/mountinfo")
# linux/mount.h
_READ_ONLY, _NO_SET_UID, _NO_DEVICES = 1, 2, 4
_REMOUNT, _BIND, _PRIVATE, _SHARED = 1 << 5, 1 << 12, 1 << 18, 1 << 20
_DETACH: Final = 2
_STAGE: Final = "stage"
_libc = ctypes.CDLL(None, use_errno=True)


def late_mounts_of(settings: BackendSettings) -> LateMounts:
    return LateMounts(root=settings.state.resolve() / "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class LateMounts:
    """The folders of warm containers.

    Attributes:
        root: ``STATE/waiting``, a shared mount of its own.
    """

    root: Path

    def unavailable_reason(self) -> str:
        """Return a sentence that says why late mounts are not possible here; empty if they are."""
        if os.geteuid() != 0:
            return "No warm containers: only root may mount their folders."
        return ""

    def prepare(self) -> None:
        """Make the root a shared mount. Raises OSError if the system refuses."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if str(self.root) not in mounted():
            _mount(self.root, self.root, _BIND)
            _mount(None, self.root, _PRIVATE)
            _mount(None, self.root, _SHARED)

    def make(self, name: str) -> tuple[Mount, ...]:
        """Make the folders of a warm container, and return its mounts. Raises OSError."""
        self.prepare()
        for folder in (*_FOLLOWING, ATTEMPT):
            self._in(name, folder).mkdir(mode=0o755, parents=True, exist_ok=True)
        os.mkfifo(self._bell(name), 0o644)
        self._bell(name).chmod(0o644)
        return tuple(
            Mount(source=str(self._in(name, folder)), target=folder, read_only=True, followed=True)
            for folder in _FOLLOWING
        )

    def fill(self, name: str, mounts: Iterable[Mount]) -> None:
        """Bind a job's folders into place, the attempt's folder last. Raises OSError."""
        for mount in sorted(mounts, key=lambda each: each.target == ATTEMPT):
            source, target = Path(mount.source), self._in(name, mount.target)
            if not mount.read_only:
                _make_mount_point(source, target)
                bind(source, target)
                continue
            stage = self.root / name / f"{_STAGE}{len(mount.target)}"
            for each in (target, stage):
                _make_mount_point(source, each)
            bind_read_only(source, target, stage)

    def filled(self) -> frozenset[str]:
        """Return the names of the containers that have got their job."""
        ends = ATTEMPT.removeprefix("/")
        return frozenset(
            Path(place).relative_to(self.root).parts[0]
            for place in self._mounts()
            if place.endswith(f"/{ends}")
        )

    def names(self) -> frozenset[str]:
        try:
            return frozenset(each.name for each in self.root.iterdir() if each.is_dir())
        except FileNotFoundError:
            return frozenset()

    def listens(self, name: str) -> bool:
        """Whether the runner there waits for its job."""
        return self._ring(name, b"")

    def ring(self, name: str) -> bool:
        """Wake the runner; False if it does not listen yet, or does not any more."""
        return self._ring(name, b"\n")

    def remove(self, name: str) -> None:
        """Remove the folders of a container that is gone; what was bound there stays."""
        own = self.root / name
        for place in sorted(self._mounts(), reverse=True):
            if Path(place).is_relative_to(own):
                _unmount(place)
        # Only empty folders and the service's own files: a mount that could not be removed
        # loses nothing.
        files = (*own.glob(f"{_STAGE}*"), *(own / _CARREL[1:]).glob("*"))
        for path in (*files, *own.glob("*/*"), *own.glob("*"), own):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()

    def release(self) -> None:
        """Remove everything, once nothing of the installation runs."""
        for name in self.names():
            self.remove(name)
        if str(self.root) in mounted():
            _unmount(str(self.root))

    # -- inside ---------------------------------------------------------------------------

    def _in(self, name: str, target: str) -> Path:
        return self.root / name / target.removeprefix("/")

    def _bell(self, name: str) -> Path:
        return self._in(name, f"{_CARREL}/{BELL}")

    def _mounts(self) -> Iterator[str]:
        return (place for place in mounted() if place.startswith(f"{self.root}/"))

    def _ring(self, name: str, what: bytes) -> bool:
        try:
            descriptor = os.open(self._bell(name), os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return False
            raise
        try:
            return os.write(descriptor, what) == len(what)
        except (BrokenPipeError, BlockingIOError):
            return False
        finally:
            os.close(descriptor)


def appears(pid: int) -> bool:
    """Whether a container, given by its first process, sees the attempt that was bound into it.

    An engine that does not share this service's mounts accepts the folders but does not see the
    attempt.
    """
    return Path(f"/proc/{pid}/root{ATTEMPT}/{ORDER}").exists()


def _make_mount_point(source: Path, place: Path) -> None:
    """Make a file or folder like ``source`` to mount it on."""
    if source.is_dir():
        place.mkdir(mode=0o755, exist_ok=True)
    else:
        place.touch(mode=0o644)


def bind(source: Path, target: Path) -> None:
    _mount(source, target, _BIND)


def bind_read_only(source: Path, target: Path, stage: Path) -> None:
    """Bind read-only: followers of ``target`` copy the mount's flags when it appears there."""
    bind(source, stage)
    try:
        _mount(None, stage, _BIND | _REMOUNT | _READ_ONLY | _NO_SET_UID | _NO_DEVICES)
        bind(stage, target)
    finally:
        _unmount(str(stage))


def mounted() -> frozenset[str]:
    """Return the mount points that this process sees."""
    return frozenset(map(_place, _MOUNTS.read_bytes().removesuffix(b"\n").split(b"\n")))


def _place(line: bytes) -> str:
    r"""Parse a mount point: spaces in it are written as \040."""
    return os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1"))


def _mount(source: Path | None, target: Path, flags: int) -> None:
    given = None if source is None else os.fsencode(source)
    if _libc.mount(given, os.fsencode(target), None, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _unmount(place: str) -> None:
    """Unmount now, or as soon as the mount is unused."""
    if _libc.umount2(os.fsencode(place), _DETACH):
        number = ctypes.get_errno()
        if number != errno.EINVAL:  # not a mount any more
            raise OSError(number, os.strerror(number), place)
