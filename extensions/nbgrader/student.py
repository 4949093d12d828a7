"""The students' part of nbgrader's exchange: fetch, submit, and fetch feedback."""

from __future__ import annotations

from pathlib import Path

from nbgrader.exchange import abc
from nbgrader.utils import find_all_notebooks

from ...courses.workspace.folder import MARK, fetch_into, fetch_record_of
from ...hub.schemas.ngshare import SentListOut, TakenOut, TreeOut
from .exchange import Exchange, pack, unpack

_NOTEBOOK = ".ipynb"
FEEDBACK = "feedback"
"""Folder of an assignment with its feedback, by time of submission."""


class ExchangeFetchAssignment(Exchange, abc.ExchangeFetchAssignment):  # type: ignore[misc]
    """Fetch an assignment; a newer version is merged into the work, which is never overwritten."""

    def copy_files(self) -> None:
        course, assignment = self.course, self.assignment
        folder = self.folder_of(course, assignment)
        there = folder.is_dir()
        made, notes = fetch_into(
            folder,
            lambda version: self.client.fetch_assignment(course, assignment, version=version),
        )
        for note in notes:
            self.log.warning(note)
        message = "Merged with version" if there else "Fetched version"
        self.log.info("%s %s: %s %s, in %s", message, made.version, course, assignment, folder)


class ExchangeSubmit(Exchange, abc.ExchangeSubmit):  # type: ignore[misc]
    """Submit an assignment as a whole; the same files again are the same submission."""

    def init_src(self) -> None:
        # nbgrader also accepts a path as the assignment: `nbgrader submit ./ps1`.
        self.coursedir.assignment_id = Path(self.assignment).absolute().name
        self.src_path = self.folder_of(self.course, self.assignment)
        if not self.src_path.is_dir():
            self.fail(f"Assignment not found at: {self.src_path}")

    def copy_files(self) -> None:
        course, assignment = self.course, self.assignment
        self._compare()
        files = self.read(self.src_path)
        files.pop(MARK, None)
        form = {"files": pack(files)}
        mark = fetch_record_of(self.src_path)
        if mark is not None:
            form["version"] = str(mark.version)
        taken = self.client.exchange_post(("submission", course, assignment), TakenOut, form)
        self.timestamp = taken.timestamp
        self.log.info("Submitted as: %s %s %s", course, assignment, taken.timestamp)
        self.log.info("%s SHA-256: %s", taken.sentence, taken.sha256)

    def _compare(self) -> None:
        """Warn about missing notebooks, and about ones that were not released."""
        at = ("assignment", self.course, self.assignment)
        listed = self.client.exchange_get(at, TreeOut, {"list_only": "true"}).files
        released = {file.path for file in listed if file.path.endswith(_NOTEBOOK)}
        mine = set(find_all_notebooks(str(self.src_path)))
        missing, extra = sorted(released - mine), sorted(mine - released)
        if missing and self.strict:
            self.fail(
                f"Assignment {self.assignment} not submitted. "
                f"There are missing notebooks for the submission: {', '.join(missing)}"
            )
        for what, names in (("Missing", missing), ("Not released", extra)):
            if names:
                self.log.warning("%s notebooks: %s", what, ", ".join(names))


class ExchangeFetchFeedback(Exchange, abc.ExchangeFetchFeedback):  # type: ignore[misc]
    """Fetch the feedback into ``feedback/TIME`` in the assignment's folder."""

    def copy_files(self) -> None:
        course, assignment, me = self.course, self.assignment, self.me
        into = self.folder_of(course, assignment) / FEEDBACK
        sent = self.client.exchange_get(("submissions", course, assignment, me), SentListOut)
        found = 0
        for each in sent.submissions:
            at = ("feedback", course, assignment, me)
            back = self.client.exchange_get(at, TreeOut, {"timestamp": each.timestamp})
            if back.files:
                unpack(back.files, into / each.timestamp)
                self.log.info("Fetched feedback: %s", into / each.timestamp)
                found += 1
        if not found:
            self.log.warning("There is no feedback on %s of %s yet.", assignment, course)
