"""Read what a job's attempts have left: log, output notebook, files and folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import NotFound
from ..interfaces.files import Files, OutputFiles
from ..interfaces.store import Store
from ..records.requests import RequestRecord


def log(storage: Files, record: RequestRecord, offset: int, member: int = 0) -> bytes:
    """Return the log of the newest attempt, or of one of its members, from a byte offset on.

    Raises:
        NotFound: the request is a session, or has no such member.
    """
    if record.job is None:
        raise NotFound(f"{record.id} is a session: it has no log; its output is in its notebooks.")
    members = len(record.lease.members) if record.lease else 0
    if member and (members or record.gang is None) and member >= max(1, members):
        raise NotFound(
            f"{record.id} has no member of the rank {member}.",
            accepted=f"A rank from 0 to {max(1, members) - 1}.",
        )
    epoch = record.lease.epoch if record.lease else 0
    return storage.log(record.id, epoch, offset=offset, member=member) if epoch else b""


def notebook(storage: Files, record: RequestRecord) -> tuple[str, bytes]:
    """Return name and content of the output notebook of the newest attempt that has one.

    Raises:
        NotFound: there is no output notebook, or none yet.
        TooLarge: the notebook is too large to be shown.
    """
    if record.job is None or not record.job.notebook_name:
        kind = "a session" if record.job is None else "a command"
        raise NotFound(f"{record.id} is {kind}: it has no output notebook.")
    for epoch in attempts_of(record):
        content = storage.output(record.id, epoch)
        if content is not None:
            return record.job.output_name, content
    raise NotFound(f"{record.id} has no output notebook yet: it is {record.state}.")


def submitted(storage: Files, record: RequestRecord) -> bytes:
    """Return the submitted notebook.

    Raises:
        NotFound: the request has none, or its files were deleted.
    """
    if record.job is None or not record.job.notebook_name:
        raise NotFound(f"{record.id} has no notebook.")
    return read_submitted(storage.input_path(record.id), record.id)


def read_submitted(path: Path, request_id: str) -> bytes:
    """Return a file that was stored with a request. Raises NotFound."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFound(
            f"The files of {request_id} were deleted.",
            accepted="Submit the notebook or the files again.",
        ) from None


def files(storage: Files, record: RequestRecord) -> tuple[int, OutputFiles]:
    """Return the newest attempt with output files, and their listing; 0 if none has any."""
    for epoch in attempts_of(record):
        found = storage.files(record.id, epoch)
        if found.files or found.left_out:
            return epoch, found
    return 0, OutputFiles(files={})


def open_file(storage: Files, record: RequestRecord, name: str) -> BinaryIO:
    """Open one of the files that ``files`` lists. Raises NotFound."""
    return storage.open_file(record.id, files(storage, record)[0], name)


def attempts_of(record: RequestRecord, *, before: int | None = None) -> range:
    """Return the numbers of all attempts, newest first.

    ``before``: only of those before this one.
    """
    last = record.lease.epoch if record.lease else 0
    return range(last if before is None else before - 1, 0, -1)


def kept_folders(
    storage: Files, record: RequestRecord, *, before: int | None = None
) -> Iterator[Path]:
    """Yield the folders of all attempts, newest first, unless the clean-up has deleted them.

    ``before``: as for ``attempts_of``.
    """
    # A deleted folder is not created again.
    if storage.keeps(record.id):
        for epoch in attempts_of(record, before=before):
            yield storage.attempt_folder(record.id, epoch)


def resumed_job(store: Store, record: RequestRecord) -> RequestRecord | None:
    """Return the job of the same owner that this one resumes: an older one, so without a circle."""
    if record.job is None or not record.job.resumes:
        return None
    try:
        found = store.request(record.job.resumes)
    except NotFound:
        return None
    return found if found.owner == record.owner else None
