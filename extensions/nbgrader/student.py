"""What students ask nbgrader's exchange for: fetch, submit, and see what came back."""

from __future__ import annotations

from pathlib import Path

from nbgrader.exchange import abc
from nbgrader.utils import find_all_notebooks

from ...courses.workspace.folder import MARK, fetch_into, fetch_record_of
from ...hub.schemas.ngshare import SentListOut, TakenOut, TreeOut
from .exchange import Exchange, packed, unpack

_NOTEBOOK = ".ipynb"
FEEDBACK = "feedback"
"""Folder of an assignment in which nbgrader keeps what came back, by time of submission."""


class ExchangeFetchAssignment(Exchange, abc.ExchangeFetchAssignment):  # type: ignore[misc]
    """Fetched again, a newer version is merged into the work, which is never overwritten."""

    def copy_files(self) -> None:
        course, assignment = self.course, self.assignment
        folder = self.folder_of(course, assignment)
        there = folder.is_dir()
        made, notes = fetch_into(
            folder,
            lambda version: self.client.hand_out(course, assignment, version=version),
        )
        for note in notes:
            self.log.warning(note)
        told = "Merged with version" if there else "Fetched version"
        self.log.info("%s %s: %s %s, in %s", told, made.version, course, assignment, folder)


class ExchangeSubmit(Exchange, abc.ExchangeSubmit):  # type: ignore[misc]
    """Everything or nothing is taken; the same files again are the same submission."""

    def init_src(self) -> None:
        # Also a path is accepted for an assignment: `nbgrader submit ./ps1`.
        self.coursedir.assignment_id = Path(self.assignment).absolute().name
        self.src_path = self.folder_of(self.course, self.assignment)
        if not self.src_path.is_dir():
            self.fail(f"Assignment not found at: {self.src_path}")

    def copy_files(self) -> None:
        course, assignment = self.course, self.assignment
        self._compare()
        files = self.read(self.src_path)
        files.pop(MARK, None)
        form = {"files": packed(files)}
        mark = fetch_record_of(self.src_path)
        if mark is not None:
            form["version"] = str(mark.version)
        taken = self.client.to_exchange(("submission", course, assignment), TakenOut, form)
        self.timestamp = taken.timestamp
        self.log.info("Submitted as: %s %s %s", course, assignment, taken.timestamp)
        self.log.info("%s SHA-256: %s", taken.sentence, taken.sha256)

    def _compare(self) -> None:
        """Says which notebooks are missing, and which were not handed out."""
        at = ("assignment", self.course, self.assignment)
        listed = self.client.from_exchange(at, TreeOut, {"list_only": "true"}).files
        released = {file.path for file in listed if file.path.endswith(_NOTEBOOK)}
        mine = set(find_all_notebooks(str(self.src_path)))
        missing, extra = sorted(released - mine), sorted(mine - released)
        if missing and self.strict:
            self.fail(
                f"Assignment {self.assignment} not submitted. "
                f"There are missing notebooks for the submission: {', '.join(missing)}"
            )
        for what, names in (("Missing", missing), ("Not handed out", extra)):
            if names:
                self.log.warning("%s notebooks: %s", what, ", ".join(names))


class ExchangeFetchFeedback(Exchange, abc.ExchangeFetchFeedback):  # type: ignore[misc]
    """The pages that teachers gave back, below ``feedback/TIME`` in the assignment's folder."""

    def copy_files(self) -> None:
        course, assignment, me = self.course, self.assignment, self.me
        into = self.folder_of(course, assignment) / FEEDBACK
        sent = self.client.from_exchange(("submissions", course, assignment, me), SentListOut)
        found = 0
        for each in sent.submissions:
            at = ("feedback", course, assignment, me)
            back = self.client.from_exchange(at, TreeOut, {"timestamp": each.timestamp})
            if back.files:
                unpack(back.files, into / each.timestamp)
                self.log.info("Fetched feedback: %s", into / each.timestamp)
                found += 1
        if not found:
            self.log.warning("There is no feedback on %s of %s yet.", assignment, course)
