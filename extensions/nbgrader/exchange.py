"""What all of nbgrader's exchange has in common: the site, who asks, and files on their way."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from nbgrader.exchange import abc
from nbgrader.utils import ignore_patterns, parse_utc
from traitlets import Bool

from ...hub.client import Client
from ...hub.client.work_archive import safe_target
from ...hub.errors import CarrelError
from ...hub.schemas.ngshare import TreeFileOut

TIMESTAMP_FILE = "timestamp.txt"
"""In it nbgrader keeps when something was submitted."""
PAGE = ".html"


class Exchange(abc.Exchange):  # type: ignore[misc]  # nbgrader has no types
    """Configured as ``c.Exchange``, like nbgrader's own.

    Where Carrel is and who asks is known in a session; elsewhere ``carrel login`` tells.
    """

    path_includes_course = Bool(
        False,
        help="Whether assignments lie in a folder of their course: ./cs101/ps1 instead of ./ps1.",
    ).tag(config=True)

    _client: Client | None = None
    _me = ""

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client.from_environment()
        return self._client

    @property
    def me(self) -> str:
        if not self._me:
            self._me = self.client.me().name
        return self._me

    @property
    def course(self) -> str:
        course = str(self.coursedir.course_id)
        if not course:
            self.fail("No course id specified. Re-run with --course flag.")
        return course

    @property
    def assignment(self) -> str:
        return str(self.coursedir.assignment_id)

    def start(self) -> object:
        """Raises ExchangeError, which nbgrader's commands show, with Carrel's sentence."""
        try:
            return super().start()
        except CarrelError as error:
            return self.fail(str(error))

    # Most of what nbgrader prepares before it copies is a matter of folders alone.

    def init_src(self) -> None:
        """Nothing is looked for on this machine."""

    def init_dest(self) -> None:
        """The site is what it goes to."""

    def folder_of(self, course: str, assignment: str) -> Path:
        """Where a student works."""
        root = Path(self.assignment_dir)
        return (
            root / course / assignment if self.path_includes_course else root / assignment
        ).absolute()

    def read(self, folder: Path) -> dict[str, bytes]:
        """The files of a folder, but what ``c.CourseDirectory`` leaves out; links stay here."""
        ignored = ignore_patterns(
            exclude=self.coursedir.ignore,
            include=self.coursedir.include,
            max_file_size=self.coursedir.max_file_size,
            log=self.log,
        )
        found: dict[str, bytes] = {}
        for here, folders, names in os.walk(folder):
            left_out = set(ignored(here, [*folders, *names]))
            folders[:] = sorted(set(folders) - left_out)
            for name in sorted(set(names) - left_out):
                path = Path(here, name)
                if path.is_symlink():
                    self.log.warning("%s is a link, and is left out.", path)
                elif path.is_file():
                    found[path.relative_to(folder).as_posix()] = path.read_bytes()
        return found


def packed(files: Mapping[str, bytes]) -> str:
    """Files as the exchange takes them."""
    return json.dumps(
        [
            {"path": name, "content": base64.b64encode(content).decode()}
            for name, content in files.items()
        ]
    )


def unpack(files: Iterable[TreeFileOut], folder: Path) -> None:
    """Into a folder; nothing is written out of it, whatever a name says."""
    for file in files:
        target = safe_target(folder, file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(base64.b64decode(file.content or ""))


def moment(timestamp: str) -> datetime:
    """In UTC, without a zone, as nbgrader compares them."""
    found: datetime = parse_utc(timestamp)
    return found
