"""Fetch the values of the secrets of a job or session, and give them to its processes.

The runner of a job fetches the values with the token of the attempt once it has claimed it; a
session does so with a ticket, see ``extensions.session_secrets``. They are on no disk: files
are in a folder of their own in memory (``/dev/shm``; without it in the folder for temporary files),
which is removed at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from .service_client import AttemptClient

FOLDER_VARIABLE: Final = "CARREL_SECRETS"
"""The folder with a file for each secret."""
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # its folders are private
_PREFIX: Final = "carrel-secrets-"


class SecretMissing(Exception):
    """A secret of the job is missing; the text says which, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretValues:
    """Values for the processes of a job.

    Attributes:
        files: by file name.
        variables: by environment variable.
    """

    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def fetch(cls, service: AttemptClient) -> SecretValues:
        """Return the values of an attempt.

        Raises:
            SecretMissing: the job must fail.
            Fenced, Rejected: the service refused the call.
            Away: the service did not answer.
        """
        return cls.parse(service.call_until_answered("secrets"))

    @classmethod
    def parse(cls, answer: bytes) -> SecretValues:
        """Read the answer of the service. Raises SecretMissing."""
        found = json.loads(answer)
        if found["missing"]:
            raise SecretMissing(found["missing"])
        return cls(files=found["files"], variables=found["variables"])

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.files.values(), *self.variables.values())

    @contextmanager
    def in_environment(self) -> Iterator[None]:
        """Give the values to the processes that are started in the block.

        Raises:
            OSError: the files cannot be written.
        """
        if not self.all:
            yield
            return
        remove_left_behind()
        folder = _new_folder()
        try:
            for name, value in self.files.items():
                _write(folder / name, value)
            os.environ.update(self.variables)
            os.environ[FOLDER_VARIABLE] = str(folder)
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind() -> None:
    """Remove the folders of this account whose process was killed."""
    for parent in (_MEMORY, Path(tempfile.gettempdir())):
        for folder in parent.glob(f"{_PREFIX}*"):
            with suppress(OSError, ValueError, IndexError):
                owner = int(folder.name.removeprefix(_PREFIX).split("-")[0])
                if folder.stat().st_uid == os.geteuid() and not psutil.pid_exists(owner):
                    shutil.rmtree(folder)


def _new_folder() -> Path:
    """Create a private folder, whose name has the id of the process that removes it."""
    prefix = f"{_PREFIX}{os.getpid()}-"
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY))
    except OSError:  # there is no such folder, or it is full
        return Path(tempfile.mkdtemp(prefix=prefix))


def _write(path: Path, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(value)
