"""Home folders: plain folders, or file systems of a fixed size if the site sets a limit.

A limit must hold for all programs, and most storage has no quotas that a service can rely on.
So a home with a limit is an ext4 file system in one file, ``STATE/disks/USER.ext4``, mounted
from a loop device at ``STATE/homes/USER``. The file is sparse: it takes what is in it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import BackendFailed
from ..interfaces.files import HomeUse
from .filenames import safe_name

_SECONDS: Final = 120.0
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OPTIONS: Final = "loop,nosuid,nodev,noatime"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFolders:
    """Attributes:
    root: ``STATE/homes``.
    disks: ``STATE/disks``.
    owner: user and group id of homes; None if the service cannot change owners.
    size: bytes of a home; None for no limit.
    """

    root: Path
    disks: Path
    owner: tuple[int, int] | None = None
    size: int | None = None

    def ready(self, name: str) -> Path:
        """Return the home, created and mounted if necessary; distinct names never share one.

        Raises:
            BackendFailed: it is not a folder, or cannot be created or mounted.
        """
        home = self.root / safe_name(name)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.size is not None and not home.is_mount():
                with self._locked(name):
                    if not home.is_mount():
                        self._mount(name, home)
            if self.owner is not None and home.stat().st_uid != self.owner[0]:
                os.chown(home, *self.owner, follow_symlinks=False)
        except OSError as error:
            raise unusable(name, home, error) from error
        return home

    def use(self, name: str) -> HomeUse | None:
        """Return the disk usage; None without a limit, or if not mounted since the start."""
        home = self.root / safe_name(name)
        if self.size is None or not home.is_mount():
            return None
        about = os.statvfs(home)
        size = about.f_blocks * about.f_frsize
        return HomeUse(used=size - about.f_bavail * about.f_frsize, size=size)

    def _mount(self, name: str, home: Path) -> None:
        assert self.size is not None
        disk = self.disks / f"{safe_name(name)}.ext4"
        if not disk.exists():
            if any(home.iterdir()):
                raise BackendFailed(
                    f"The home of {name} contains files from before homes had a limit.",
                    accepted=f"Move {home} aside, let {name} start a session, and copy them back.",
                )
            self._make(disk)
        elif disk.stat().st_size < self.size:
            _run("truncate", "--size", str(self.size), str(disk))
            _run("e2fsck", "-f", "-p", str(disk), fine=(0, 1))
            _run("resize2fs", str(disk))
        _run("mount", "-o", _OPTIONS, str(disk), str(home))
        home.chmod(0o700)

    def _make(self, disk: Path) -> None:
        """Create the file system atomically: a file of this name can always be mounted."""
        draft = disk.with_suffix(".new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.truncate(descriptor, self.size or 0)
        os.close(descriptor)
        uid, gid = self.owner or (os.geteuid(), os.getegid())
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", f"root_owner={uid}:{gid}", str(draft))
        draft.replace(disk)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Exclude other processes: JupyterHub and the service both prepare homes."""
        self.disks.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.disks / f"{safe_name(name)}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def unusable(name: str, home: Path, error: OSError) -> BackendFailed:
    """Return the error for a home that cannot be created or entered."""
    why = error.strerror or str(error)
    if home.is_symlink() and not home.exists():
        why = f"{home} is a link to {home.readlink()}, which does not exist"
    elif home.exists() and not home.is_dir():
        why = f"{home} is not a folder"
    return BackendFailed(
        f"The home of {name} cannot be used: {why}.", accepted="Ask an administrator to restore it."
    )


def release(root: Path) -> None:
    """Unmount every home below the folder, except those in use.

    A home that stays mounted is not damaged: the next start uses it as it is.
    """
    for line in _MOUNTS.read_bytes().removesuffix(b"\n").split(b"\n"):
        # Blanks in a path are written as \040.
        escaped = line.split(b" ")[4].decode("unicode_escape")
        place = Path(os.fsdecode(escaped.encode("latin-1")))
        if place.parent == root:
            subprocess.run(["umount", str(place)], check=False, capture_output=True)


def _run(program: str, *arguments: str, fine: tuple[int, ...] = (0,)) -> None:
    try:
        done = subprocess.run(
            [program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env={**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendFailed(f"A home could not be prepared: {error}.") from error
    if done.returncode not in fine:
        lines = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["(no output)"]
        raise BackendFailed(f"A home could not be prepared: {program} reports: {lines[0]}")
