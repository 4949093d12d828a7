"""Homes and outputs in the state folder: the ``Files`` port of the local engine."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .naming import safe_name

INPUT = "input.ipynb"
OUTPUT = "output.ipynb"
LOG = "log.txt"


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """``homes/USER`` and ``outputs/REQUEST/ATTEMPT`` below two folders."""

    homes: Path
    outputs: Path

    def home(self, owner: str) -> Path:
        home = self.homes / safe_name(owner)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return home

    def input_path(self, request_id: str) -> Path:
        return self._folder(request_id) / INPUT

    def put_input(self, request_id: str, notebook: bytes) -> None:
        target = self.input_path(request_id)
        draft = target.with_name(INPUT + ".new")
        with draft.open("wb") as file:
            file.write(notebook)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)

    def discard(self, request_id: str) -> None:
        shutil.rmtree(self._folder(request_id))

    def attempt_folder(self, request_id: str, epoch: int) -> Path:
        folder = self._folder(request_id) / str(epoch)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def output(self, request_id: str, epoch: int) -> bytes | None:
        path = self._folder(request_id) / str(epoch) / OUTPUT
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def log(self, request_id: str, epoch: int, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        path = self._folder(request_id) / str(epoch) / LOG
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(limit)
        except FileNotFoundError:
            return b""

    def _folder(self, request_id: str) -> Path:
        folder = self.outputs / safe_name(request_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
