"""What the attempts of a job have left: the log, the notebook, the files."""

from __future__ import annotations

from typing import BinaryIO

from ..errors import NotFound
from ..interfaces.files import Files, OutputFiles
from ..records.requests import RequestRecord


def log(place: Files, record: RequestRecord, offset: int) -> bytes:
    """What the newest attempt has printed.

    Raises:
        NotFound: sessions have none.
    """
    if record.job is None:
        raise NotFound(f"{record.id} is a session: what its notebooks print is in them.")
    epoch = record.lease.epoch if record.lease else 0
    return place.log(record.id, epoch, offset=offset) if epoch else b""


def notebook(place: Files, record: RequestRecord) -> tuple[str, bytes]:
    """Name and content of the output notebook, of the newest attempt that has one.

    Raises:
        NotFound: there is none, or none yet.
        TooLarge: it is more than can be shown.
    """
    if record.job is None or not record.job.notebook_name:
        kind = "a session" if record.job is None else "a command"
        raise NotFound(f"{record.id} is {kind}: it has no output notebook.")
    for epoch in _attempts(record):
        content = place.output(record.id, epoch)
        if content is not None:
            return record.job.output_name, content
    raise NotFound(f"{record.id} has no output notebook yet: it is {record.state}.")


def files(place: Files, record: RequestRecord) -> tuple[int, OutputFiles]:
    """The newest attempt with files, and these."""
    for epoch in _attempts(record):
        found = place.files(record.id, epoch)
        if found.files or found.left_out:
            return epoch, found
    return 0, OutputFiles(files={})


def open_file(place: Files, record: RequestRecord, name: str) -> BinaryIO:
    return place.open_file(record.id, files(place, record)[0], name)


def _attempts(record: RequestRecord) -> range:
    """Numbers of all attempts so far, the newest first."""
    return range(record.lease.epoch if record.lease else 0, 0, -1)
