"""Bind-mount the folders of a job into a warm container that is already running.

The engine cannot add mounts to a running container. A warm container is therefore created with
three empty folders that receive mounts of the host (``rslave``): when it gets a job, the job's
folders are bound there, with the same permissions as in a container created for the job. Only root
may mount, and only on the engine's machine.
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

from ....hub.attempts.spec import ORDER, WAKE_PIPE
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
        """Return a sentence that says why late mounts are impossible here; empty if possible."""
        if os.geteuid() != 0:
            return "No warm containers: only root may mount their folders."
        return ""

    def prepare(self) -> None:
        """Make the root a shared mount.

        Raises:
            OSError: the system refuses.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if str(self.root) not in mounted():
            _mount(self.root, self.root, _BIND)
            _mount(None, self.root, _PRIVATE)
            _mount(None, self.root, _SHARED)

    def make(self, name: str) -> tuple[Mount, ...]:
        """Create the folders of a warm container, and return its mounts.

        Raises:
            OSError: a folder cannot be created.
        """
        self.prepare()
        for folder in (*_FOLLOWING, ATTEMPT):
            self._in(name, folder).mkdir(mode=0o755, parents=True, exist_ok=True)
        os.mkfifo(self._wake_pipe(name), 0o644)
        self._wake_pipe(name).chmod(0o644)
        return tuple(
            Mount(source=str(self._in(name, folder)), target=folder, read_only=True, followed=True)
            for folder in _FOLLOWING
        )

    def fill(self, name: str, mounts: Iterable[Mount]) -> None:
        """Bind a job's folders into place, the attempt's folder last.

        Raises:
            OSError: a mount failed.
        """
        for mount in sorted(mounts, key=lambda mount: mount.target == ATTEMPT):
            source, target = Path(mount.source), self._in(name, mount.target)
            if not mount.read_only:
                _make_mount_point(source, target)
                bind(source, target)
                continue
            stage = self.root / name / f"{_STAGE}{len(mount.target)}"
            for mount_point in (target, stage):
                _make_mount_point(source, mount_point)
            bind_read_only(source, target, stage)

    def filled(self) -> frozenset[str]:
        """Return the names of the containers that have received their job."""
        attempt = ATTEMPT.removeprefix("/")
        return frozenset(
            Path(path).relative_to(self.root).parts[0]
            for path in self._mounts()
            if path.endswith(f"/{attempt}")
        )

    def names(self) -> frozenset[str]:
        try:
            return frozenset(folder.name for folder in self.root.iterdir() if folder.is_dir())
        except FileNotFoundError:
            return frozenset()

    def listens(self, name: str) -> bool:
        """Whether the runner of a container waits for its job."""
        return self._write_to_pipe(name, b"")

    def wake(self, name: str) -> bool:
        """Wake the runner of a container; return False if it is not waiting."""
        return self._write_to_pipe(name, b"\n")

    def remove(self, name: str) -> None:
        """Remove the folders of a container that is gone; the files that were bound there stay."""
        own = self.root / name
        for mount_point in sorted(self._mounts(), reverse=True):
            if Path(mount_point).is_relative_to(own):
                _unmount(mount_point)
        # Only empty folders and the service's own files are deleted: if a mount could not be
        # removed, its files stay.
        files = (*own.glob(f"{_STAGE}*"), *(own / _CARREL[1:]).glob("*"))
        for path in (*files, *own.glob("*/*"), *own.glob("*"), own):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()

    def release(self) -> None:
        """Remove all folders; no container of the installation may be running."""
        for name in self.names():
            self.remove(name)
        if str(self.root) in mounted():
            _unmount(str(self.root))

    # -- private --------------------------------------------------------------------------

    def _in(self, name: str, target: str) -> Path:
        return self.root / name / target.removeprefix("/")

    def _wake_pipe(self, name: str) -> Path:
        return self._in(name, f"{_CARREL}/{WAKE_PIPE}")

    def _mounts(self) -> Iterator[str]:
        return (path for path in mounted() if path.startswith(f"{self.root}/"))

    def _write_to_pipe(self, name: str, data: bytes) -> bool:
        """Write without waiting; return False if no runner has the pipe open."""
        try:
            descriptor = os.open(self._wake_pipe(name), os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return False
            raise
        try:
            return os.write(descriptor, data) == len(data)
        except (BrokenPipeError, BlockingIOError):
            return False
        finally:
            os.close(descriptor)


def attempt_is_visible(pid: int) -> bool:
    """Whether a container sees the attempt that was bound into it; ``pid`` is its first process.

    With an engine that does not share the mounts of this service, the container sees an empty
    folder.
    """
    return Path(f"/proc/{pid}/root{ATTEMPT}/{ORDER}").exists()


def _make_mount_point(source: Path, path: Path) -> None:
    """Create a file or a folder, as ``source`` is, on which it can be mounted."""
    if source.is_dir():
        path.mkdir(mode=0o755, exist_ok=True)
    else:
        path.touch(mode=0o644)


def bind(source: Path, target: Path) -> None:
    _mount(source, target, _BIND)


def bind_read_only(source: Path, target: Path, stage: Path) -> None:
    """Bind a folder read-only.

    The flags are set on ``stage`` first: containers copy a mount with its flags at the time when it
    appears in ``target``.
    """
    bind(source, stage)
    try:
        _mount(None, stage, _BIND | _REMOUNT | _READ_ONLY | _NO_SET_UID | _NO_DEVICES)
        bind(stage, target)
    finally:
        _unmount(str(stage))


def mounted() -> frozenset[str]:
    """Return the mount points that this process sees."""
    return frozenset(map(_mount_point, _MOUNTS.read_bytes().removesuffix(b"\n").split(b"\n")))


def _mount_point(line: bytes) -> str:
    r"""Parse the mount point of a line of mountinfo: spaces in it are written as \040."""
    return os.fsdecode(line.split(b" ")[4].decode("unicode_escape").encode("latin-1"))


def _mount(source: Path | None, target: Path, flags: int) -> None:
    encoded = None if source is None else os.fsencode(source)
    if _libc.mount(encoded, os.fsencode(target), None, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _unmount(path: str) -> None:
    """Unmount now, or as soon as the mount is unused."""
    if _libc.umount2(os.fsencode(path), _DETACH):
        number = ctypes.get_errno()
        if number != errno.EINVAL:  # no longer mounted
            raise OSError(number, os.strerror(number), path)
