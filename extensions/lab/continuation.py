"""Continue the work of a session as a job: its current notebook on the same kind of devices."""

from __future__ import annotations

from pathlib import Path

from ...hub.errors import InvalidInput
from ...hub.schemas import RequestOut
from .. import job

LABEL = "continues"
"""Label of the job; its value is the session."""


def notebook_path(root: Path, path: str) -> Path:
    """Return the file of a notebook that is open in this server.

    Args:
        root: folder of the server.
        path: path below it, as the front end names the document.

    Raises:
        InvalidInput: it leads outside the folder, or is not a saved notebook.
    """
    file = (root / path).resolve()
    if not file.is_relative_to(root.resolve()) or file.suffix != ".ipynb" or not file.is_file():
        raise InvalidInput(
            f"{path or 'The document'} is not a notebook that is saved in this session's folder.",
            accepted="Open a notebook, save it and try again.",
        )
    return file


def continue_as_job(session: RequestOut, notebook: Path, time: str) -> job.Job:
    """Submit the notebook from its first cell, with group, devices and image of the session.

    Raises:
        CarrelError: the time limit cannot be read, or the service refuses the job.
    """
    return job.submit(
        notebook,
        devices=session.devices,
        model=session.model,
        time=time,
        group=session.group,
        image=session.image,
        labels={LABEL: session.id},
    )
