"""The base of all exchange classes: the site, the user, and files in transit."""

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
"""nbgrader's file with the time of a submission."""
PAGE = ".html"


class Exchange(abc.Exchange):  # type: ignore[misc]  # nbgrader has no types
    """The base class, configured as ``c.Exchange``, like nbgrader's own.

    A session knows the site and the user; elsewhere ``carrel login`` sets them.
    """

    path_includes_course = Bool(
        False,
        help="Whether assignments are in a folder of their course: ./cs101/ps1 instead of ./ps1.",
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
        """Run the command; raises ExchangeError, which nbgrader shows, with Carrel's message."""
        try:
            return super().start()
        except CarrelError as error:
            return self.fail(str(error))

    # nbgrader's preparations are mostly about folders of a shared file system.

    def init_src(self) -> None:
        """Do nothing: by default there is no source folder."""

    def init_dest(self) -> None:
        """Do nothing: the destination is the site."""

    def folder_of(self, course: str, assignment: str) -> Path:
        """Return the student's folder of an assignment."""
        root = Path(self.assignment_dir)
        return (
            root / course / assignment if self.path_includes_course else root / assignment
        ).absolute()

    def read(self, folder: Path) -> dict[str, bytes]:
        """Return the files of a folder, without links and what ``c.CourseDirectory`` ignores."""
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
                    self.log.warning("%s is a link and was left out.", path)
                elif path.is_file():
                    found[path.relative_to(folder).as_posix()] = path.read_bytes()
        return found


def pack(files: Mapping[str, bytes]) -> str:
    """Encode files as the exchange expects them."""
    return json.dumps(
        [
            {"path": name, "content": base64.b64encode(content).decode()}
            for name, content in files.items()
        ]
    )


def unpack(files: Iterable[TreeFileOut], folder: Path) -> None:
    """Write files into a folder, and never outside of it, whatever their names are."""
    for file in files:
        target = safe_target(folder, file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(base64.b64decode(file.content or ""))


def parse_timestamp(timestamp: str) -> datetime:
    """Parse a time in UTC without a time zone, as nbgrader compares them."""
    found: datetime = parse_utc(timestamp)
    return found
