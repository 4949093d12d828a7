"""The session in which an operation of the panel runs, and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...hub.client import Client
from ...hub.errors import InvalidInput
from ...hub.schemas import In
from ..job import client_of

NOTEBOOK = ".ipynb"


class NothingIn(In):
    """The body of an operation without arguments."""


class PathIn(In):
    """A document or folder, by its path as JupyterLab names it."""

    path: Annotated[str, Field(max_length=4096)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlace:
    """A session: its request, and the folder that JupyterLab shows.

    Attributes:
        root: the folder of the server, to which the paths of documents are relative; resolved.
        request_id: the request of this session.
    """

    root: Path
    request_id: str

    @property
    def client(self) -> Client:
        return client_of()

    def named(self, path: Path) -> str:
        """Return the path of a file or folder as JupyterLab names it."""
        return path.relative_to(self.root).as_posix()

    def inside(self, path: str) -> Path | None:
        """Return the file or folder of this path; None if it leads outside the root."""
        found = (self.root / path).resolve()
        return found if found.is_relative_to(self.root) else None

    def notebook(self, path: str) -> Path:
        """Return the file of a notebook that is open in this server.

        Raises:
            InvalidInput: it leads outside the root, or is not a saved notebook.
        """
        file = self.inside(path)
        if file is None or file.suffix != NOTEBOOK or not file.is_file():
            raise InvalidInput(
                f"{path or 'The document'} is not a notebook that is saved in this session's "
                "folder.",
                accepted="Open a notebook, save it and try again.",
            )
        return file
