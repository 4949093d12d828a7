"""Copy the logs of a job that TensorBoard or MLflow shows to the session."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ...hub.client import Client
from ...hub.client.work_archive import safe_target
from ...hub.errors import Conflict, Forbidden, NotFound, TooLarge
from ...hub.files.log_viewers import MLFLOW, LogViewer
from ...hub.messages.units import memory

MOST_BYTES = 1 << 30
_TRIES = 3


def copy_logs(client: Client, job: str, viewer: LogViewer, folder: Path) -> None:
    """Copy the logs of a job into a folder; event files that have not grown stay as they are.

    Raises:
        NotFound: the job does not exist, or has none.
        Forbidden: it is a job of someone else, whose logs could contain scripts.
        TooLarge: they have more than ``MOST_BYTES`` together.
        Conflict: a database was written to while it was read.
        OSError: they cannot be written.
    """
    if client.request(job).owner != client.me().name:
        raise Forbidden(
            f"{job} is not a job of yours.", accepted="Only the logs of your own jobs are opened."
        )
    files = [file for file in client.files(job).files if viewer.reads(file.name)]
    if not files:
        raise NotFound(
            f"{job} has written no {viewer.title} logs.", accepted=f"A job that {viewer.writes}."
        )
    if sum(file.size for file in files) > MOST_BYTES:
        raise TooLarge(
            f"The {viewer.title} logs of {job} are larger than {memory(MOST_BYTES)}.",
            accepted=f"Save the files in your home, and open {viewer.title} there.",
        )
    if viewer is MLFLOW:
        _copy_database(client, job, files[0].name, folder)
        return
    for file in files:
        path = safe_target(folder, file.name)
        if path.is_file() and path.stat().st_size == file.size:
            continue
        _copy(client, job, file.name, path)


def database_of(folder: Path) -> Path:
    """Return the database of MLflow in the folder of copied logs."""
    return folder / MLFLOW.pattern


def _copy(client: Client, job: str, name: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as copy:
        for part in client.file(job, name):
            copy.write(part)


def _copy_database(client: Client, job: str, name: str, folder: Path) -> None:
    """Copy it whole, then put it in place in one transaction: MLflow may have it open."""
    fetched = folder / "fetched.db"
    for _ in range(_TRIES):
        _copy(client, job, name, fetched)
        try:
            with closing(sqlite3.connect(fetched)) as new:
                if new.execute("pragma quick_check").fetchone() != ("ok",):
                    continue
                with closing(sqlite3.connect(database_of(folder))) as shown:
                    new.backup(shown)
        except sqlite3.DatabaseError:
            continue
        fetched.unlink()
        return
    raise Conflict(
        f"{name} of {job} is no complete database: the job is writing to it, or it is damaged.",
        accepted="Try again in a moment, or when the job has ended.",
    )
