"""What users' jobs have compiled with PyTorch, in a folder that only the service reads.

A cache is native code: it is offered to jobs of the user whose job has written it, and to no other.
One is kept for each program, image and node; a job on another node gets the newest one of its
program, which it compares with its processor. PyTorch itself compares the content of each graph and
the GPU. Files of an attempt belong to the owner of the job: they are read bounded, and no link in
them is followed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..files.filenames import safe_name
from ..files.safe_fs import Owner, add_folder, give_folder, opened_file, opened_folder
from ..interfaces.job_reuse import CompileCaches, KeptCompileCache
from ..records.leases import LeaseRecord
from ..records.requests import RequestRecord
from ..scheduling.model.snapshot import Kind
from .compile_cache_side import (
    COMPILED,
    COURSE,
    DRAFTS,
    HEADER_BYTES,
    LIMIT,
    NEW,
    OWN,
    parse_cache,
)

log = logging.getLogger(__name__)

LABEL, OFF = "compile-cache", "off"
"""The label with which a job neither loads nor keeps anything."""
_SUFFIX: Final = ".cache"
_DRAFT: Final = ".part"
_LONGEST: Final = 200
_REMOVAL_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class OwnerCompileCaches:
    """The caches of all users; a ``CompileCaches``.

    Attributes:
        root: the folder of all caches.
        most_bytes: for each user; the caches that were not used for longest are dropped.
        owner: the account that jobs run as, where that is not the service's.
    """

    root: Path
    most_bytes: int
    owner: Owner | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, root: Path, most_bytes: int, owner: Owner | None) -> CompileCaches:
        """Return what keeps up to so many bytes for each user; 0: nothing is kept.

        What is there beyond that, from an earlier limit, is deleted.
        """
        made = cls(root, max(0, most_bytes), owner)
        made._drop_excess()
        return made

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None:
        if self.most_bytes == 0 or not may_use(request):
            return
        try:
            allow(folder, self.owner)
            if request.job is not None and request.job.computes_prefix:
                return  # All that a course's job compiles is its own.
            path = self._path(request, lease.node)
            with self.lock, suppress(FileNotFoundError):
                path = path if path.exists() else self._of_other_node(path)
                copy_cache(path, folder / OWN, mode=0o600, owner=self.owner)
                os.utime(path)
        except (OSError, ValueError) as error:
            log.warning("%s: no compile cache is offered: %s", lease.id, error)

    def keep(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None:
        job = request.job
        if job is None or job.computes_prefix or self.most_bytes == 0 or not may_use(request):
            return
        try:
            path = self._path(request, lease.node)
            with self.lock:  # The owner may delete the folder at any time.
                for place in (self.root, path.parent):
                    place.mkdir(exist_ok=True, mode=0o700)
                with suppress(FileNotFoundError):
                    keep_cache(folder, path, _about(request))
                self._drop_oldest(path.parent)
        except (OSError, ValueError) as error:
            log.warning("%s: its compile cache is not kept: %s", lease.id, error)

    def kept(self, owner: str) -> tuple[KeptCompileCache, ...]:
        found = self._described(owner).values()
        return tuple(sorted(found, key=lambda each: each.used_at, reverse=True))

    def clear(self, owner: str) -> None:
        with self.lock:
            shutil.rmtree(self.root / safe_name(owner), ignore_errors=True)

    def remove(self, owner: str, request: str) -> bool:
        with self.lock:
            found = [
                path for path, each in self._described(owner).items() if each.request == request
            ]
            for path in found:
                path.unlink(missing_ok=True)
        return bool(found)

    def _described(self, owner: str) -> dict[Path, KeptCompileCache]:
        """Return the caches of a user that can be read."""
        files = {path: _described_file(path) for path in self._files(self.root / safe_name(owner))}
        return {path: each for path, each in files.items() if each is not None}

    def _path(self, request: RequestRecord, node: str) -> Path:
        """Return the file of the cache of a program on a node; it need not exist."""
        parts = request.group, request.image, _program(request)
        return self.root / safe_name(request.owner) / f"{_digest(*parts)}-{_digest(node)}{_SUFFIX}"

    def _of_other_node(self, path: Path) -> Path:
        """Return the newest cache of the same program. Raises FileNotFoundError."""
        program = path.name.partition("-")[0]
        same = [each for each in self._files(path.parent) if each.name.startswith(program)]
        if not same:
            raise FileNotFoundError(path)
        return max(same, key=lambda each: each.stat().st_mtime)

    def _files(self, folder: Path) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (path for path in folder.iterdir() if path.suffix == _SUFFIX)

    def _drop_excess(self) -> None:
        """Delete what the limit no longer allows, and what a killed service has half written."""
        folders = [path for path in self.root.glob("*") if path.is_dir()]
        for folder in folders:
            try:
                for draft in folder.glob(f".*{_DRAFT}"):
                    draft.unlink(missing_ok=True)
                self._drop_oldest(folder)
            except OSError as error:
                log.warning("%s: compile caches above the limit are left: %s", folder, error)
            with suppress(OSError):  # It is not empty.
                folder.rmdir()

    def _drop_oldest(self, folder: Path) -> None:
        left = self.most_bytes
        for path in sorted(self._files(folder), key=lambda each: -each.stat().st_mtime):
            left -= path.stat().st_size
            if left < 0:
                path.unlink(missing_ok=True)


def may_use(request: RequestRecord) -> bool:
    """Whether a job may use a compile cache: one process of its owner's own program."""
    job = request.job
    return (
        request.kind is Kind.JOB
        and job is not None
        and not request.trusted
        and job.gang is None
        and job.sweep is None
        and request.labels.get(LABEL) != OFF
    )


def allow(folder: Path, owner: Owner | None) -> None:
    """Make the folder of the compiler in that of an attempt: with it, the job uses the cache."""
    add_folder(folder, COMPILED)
    if owner is not None:
        give_folder(folder / COMPILED, owner)


def keep_cache(attempt: Path, path: Path, about: Mapping[str, str], *, unlink: bool = True) -> None:
    """Copy what an attempt has compiled into a file of the service.

    Args:
        about: what the header says of the job that has compiled it.
        unlink: whether the file of the attempt is deleted then.

    Raises:
        FileNotFoundError: it has compiled nothing new.
        OSError: it cannot be read, or the file cannot be written.
        ValueError: it is damaged or too large.
    """
    try:
        with opened_file(attempt, NEW) as file:
            header, content = parse_cache(file)
        header |= about
        _write(path, json.dumps(header).encode() + b"\n" + content, mode=0o600, owner=None)
    finally:
        if unlink:
            unlink_new(attempt)


def unlink_new(attempt: Path) -> None:
    """Delete what an attempt has left for the service, if it has left anything."""
    with suppress(OSError), opened_folder(attempt) as above:
        os.unlink(NEW, dir_fd=above)


def copy_cache(path: Path, target: Path, *, mode: int, owner: Owner | None) -> None:
    """Copy a cache of the service. Raises OSError."""
    with opened_file(path.parent, path.name) as file:
        content = file.read(LIMIT + HEADER_BYTES + 1)
    _write(target, content, mode=mode, owner=owner)


def withdraw_offers(attempt: Path) -> None:
    """Delete the caches, unfinished files and the compiler's folder from that of an attempt that
    has ended; safe to repeat."""
    with suppress(OSError):
        for path in (attempt / OWN, attempt / COURSE, *attempt.glob(f"{DRAFTS}*")):
            with suppress(OSError):
                path.unlink()
    _remove_folder(attempt / COMPILED)


def _remove_folder(path: Path) -> None:
    """Delete a folder that belongs to a job: in bounded time, and however deep it is."""
    if path.is_symlink() or not path.is_dir():
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            ["rm", "-rf", "--", str(path)],
            timeout=_REMOVAL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _write(target: Path, content: bytes, *, mode: int, owner: Owner | None) -> None:
    draft = target.with_name(f".{target.name}{_DRAFT}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
    draft.replace(target)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _about(request: RequestRecord) -> dict[str, str]:
    values = {
        "request": request.id,
        "program": _program(request),
        "group": request.group,
        "image": request.image,
    }
    return {name: value[:_LONGEST] for name, value in values.items()}


def _program(request: RequestRecord) -> str:
    job = request.job
    if job is None:
        return ""
    return job.notebook_name or " ".join(job.command[:2])[:_LONGEST]


def _described_file(path: Path) -> KeptCompileCache | None:
    try:
        with path.open("rb") as file:
            header: Any = json.loads(file.readline(HEADER_BYTES))
        about = path.stat()
        return KeptCompileCache(
            program=str(header["program"]),
            request=str(header["request"]),
            group=str(header.get("group", "")),
            image=str(header.get("image", "")),
            graphs=int(header["graphs"]),
            size=about.st_size,
            used_at=about.st_mtime,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
