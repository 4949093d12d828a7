"""Copy the event files of a job, from which TensorBoard draws, to the session."""

from __future__ import annotations

from pathlib import Path

from ...hub.client import Client
from ...hub.client.work_archive import safe_target
from ...hub.errors import Forbidden, NotFound, TooLarge
from ...hub.files.filenames import is_event_file
from ...hub.messages.units import memory

MOST_BYTES = 1 << 30


def copy_event_files(client: Client, job: str, folder: Path) -> None:
    """Copy the event files of a job into a folder; those that have not grown stay as they are.

    Raises:
        NotFound: the job does not exist, or has none.
        Forbidden: it is a job of someone else, whose logs could contain scripts.
        TooLarge: they have more than ``MOST_BYTES`` together.
        OSError: they cannot be written.
    """
    if client.request(job).owner != client.me().name:
        raise Forbidden(
            f"{job} is not a job of yours.", accepted="Only the logs of your own jobs are opened."
        )
    files = [file for file in client.files(job).files if is_event_file(file.name)]
    if not files:
        raise NotFound(
            f"{job} has written no TensorBoard logs.",
            accepted="A job that writes events.out.tfevents… files to $CARREL_OUTPUT_DIR.",
        )
    if sum(file.size for file in files) > MOST_BYTES:
        raise TooLarge(
            f"The TensorBoard logs of {job} are larger than {memory(MOST_BYTES)}.",
            accepted="Save the files in your home, and open TensorBoard there.",
        )
    for file in files:
        path = safe_target(folder, file.name)
        if path.is_file() and path.stat().st_size == file.size:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as copy:
            for part in client.file(job, file.name):
                copy.write(part)
