"""Copy the executed notebook of a job into the home, without overwriting a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...hub.client.work_archive import safe_target
from ...hub.errors import CarrelError, InvalidInput
from ...hub.files.filenames import numbered
from ...hub.schemas import In, Out
from .session_place import SessionPlace


class CopyIn(In):
    """The job whose output notebook is copied."""

    job: Annotated[str, Field(min_length=1, max_length=64)]


class CopiedOut(Out):
    """The copy; ``is_new`` is false if the same file was there already."""

    path: str
    is_new: bool


def copy_into_home(place: SessionPlace, body: CopyIn) -> CopiedOut:
    """Copy the output notebook into the job's working folder, else into the home.

    Raises:
        NotFound: the job does not exist, or has no output yet.
        InvalidInput: the folder cannot be written.
    """
    request = place.client.request(body.job)
    output = place.client.output(request.id)
    folder = _folder(place, request.workdir)
    try:
        path, is_new = put_beside(folder, output.name, output.content)
    except OSError as error:
        raise InvalidInput(
            f"{place.named(folder) or 'Your home'} cannot be written: {error.strerror}.",
            accepted="Free space in your home, or make the folder writable.",
        ) from error
    return CopiedOut(path=place.named(path), is_new=is_new)


def put_beside(folder: Path, name: str, content: bytes) -> tuple[Path, bool]:
    """Write a file under the first free name; return its path, and whether it is new.

    The names are ``train.ipynb``, ``train-1.ipynb``, ``train-2.ipynb``, …; a file of these with the
    same content is returned instead. A link is not followed.

    Raises:
        OSError: it cannot be written.
    """
    for candidate in numbered(Path(name).name):
        path = folder / candidate
        try:
            with path.open("xb") as file:
                file.write(content)
            return path, True
        except FileExistsError:
            if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
                return path, False
        except OSError:
            path.unlink(missing_ok=True)  # half a notebook, as on a full disk
            raise
    raise AssertionError("there is always another name")


def _folder(place: SessionPlace, workdir: str) -> Path:
    """Return the working folder, so that the notebook finds the files that it reads."""
    if not workdir:
        return place.root
    try:
        folder = safe_target(place.root, workdir)
    except CarrelError:
        return place.root
    return folder if folder.is_dir() else place.root
