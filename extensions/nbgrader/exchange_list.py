"""nbgrader's list: released assignments, submissions, and feedback.

The values are those that nbgrader's JupyterLab extension reads. Submissions are read from the site:
there is no cache in the home, and work that was submitted elsewhere is listed, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from nbgrader.exchange import abc

from ...hub.errors import Forbidden
from ...hub.schemas.ngshare import DoneOut, NamesOut, SentListOut, SentOut, TreeFileOut, TreeOut
from .exchange import PAGE, Exchange
from .student import FEEDBACK

Listed: TypeAlias = dict[str, object]
_ANY = frozenset({"", "*"})


class ExchangeList(Exchange, abc.ExchangeList):  # type: ignore[misc]
    """``--cached`` lists your own submissions, ``--inbound`` all that you may see."""

    def copy_files(self) -> None:
        """Do nothing: a list copies no files."""

    def list_files(self) -> list[Listed]:
        found = self._submitted() if self.inbound or self.cached else self._released()
        submitted = self.inbound or self.cached
        self.log.info("Submitted assignments:" if submitted else "Released assignments:")
        for each in found:
            for line in _lines(each):
                self.log.info(line)
        return found

    def remove_files(self) -> list[Listed]:
        """Withdraw released assignments; submissions stay."""
        if self.inbound or self.cached:
            self.fail("Submissions are kept: Carrel does not remove them.")
        found = self._released()
        for each in found:
            at = ("assignment", str(each["course_id"]), str(each["assignment_id"]))
            self.client.exchange_delete(at, DoneOut)
            self.log.info("Withdrawn: %s %s", *at[1:])
        return [{**each, "status": "removed"} for each in found]

    # -- entries --------------------------------------------------------------------------

    def _named(self) -> Iterator[tuple[str, str]]:
        """Yield the given courses and assignments, or all of them."""
        courses = [self.coursedir.course_id]
        if self.coursedir.course_id in _ANY:
            courses = self.client.exchange_get(("courses",), NamesOut).courses or []
        for course in courses:
            names = self.client.exchange_get(("assignments", course), NamesOut).assignments or []
            for name in names:
                if self.assignment in {*_ANY, name}:
                    yield course, name

    def _released(self) -> list[Listed]:
        return [self._released_entry(course, name) for course, name in self._named()]

    def _released_entry(self, course: str, name: str) -> Listed:
        folder = self.folder_of(course, name)
        local: Listed = {"course_id": course, "assignment_id": name}
        if folder.is_dir():
            notebooks: list[Listed] = [
                {"notebook_id": path.stem, "path": str(path)}
                for path in sorted(folder.glob("*.ipynb"))
            ]
            return {**local, "status": "fetched", "path": str(folder), "notebooks": notebooks}
        listed = self.client.exchange_get(
            ("assignment", course, name), TreeOut, {"list_only": "true"}
        )
        names = [Path(file.path) for file in listed.files]
        notebooks = [
            {"notebook_id": path.stem, "path": str(path)}
            for path in names
            if path.suffix == ".ipynb"
        ]
        return {**local, "status": "released", "path": "", "notebooks": notebooks}

    def _submitted(self) -> list[Listed]:
        found: list[Listed] = []
        for course, name in self._named():
            sent = self._submissions_of(course, name)
            for student, theirs in groupby(sent, key=lambda each: each.student_id):
                submissions = [self._submission_entry(course, name, each) for each in theirs]
                local = {"course_id": course, "assignment_id": name, "student_id": student}
                found.append({**local, "status": "submitted", "submissions": submissions})
        return found

    def _submissions_of(self, course: str, name: str) -> list[SentOut]:
        """Return submissions ordered by student; only your own if you may not see others'."""
        path = ("submissions", course, name)
        student = self.me if self.cached else self.coursedir.student_id
        if student not in _ANY:
            return self.client.exchange_get((*path, student), SentListOut).submissions
        try:
            return self.client.exchange_get(path, SentListOut).submissions
        except Forbidden:
            return self.client.exchange_get((*path, self.me), SentListOut).submissions

    def _submission_entry(self, course: str, name: str, sent: SentOut) -> Listed:
        student, time = sent.student_id, {"list_only": "true", "timestamp": sent.timestamp}
        files = self.client.exchange_get(("submission", course, name, student), TreeOut, time)
        feedback = self.client.exchange_get(("feedback", course, name, student), TreeOut, time)
        folder = self.folder_of(course, name) / FEEDBACK / sent.timestamp
        notebooks = [
            _notebook(Path(file.path).stem, folder, feedback.files)
            for file in files.files
            if file.path.endswith(".ipynb")
        ]
        local = bool(notebooks) and all(each["has_local_feedback"] for each in notebooks)
        return {
            "course_id": course,
            "assignment_id": name,
            "student_id": student,
            "timestamp": sent.timestamp,
            "status": "submitted",
            "path": "",
            "notebooks": notebooks,
            "has_local_feedback": local,
            "has_exchange_feedback": bool(notebooks)
            and all(each["has_exchange_feedback"] for each in notebooks),
            "feedback_updated": any(each["feedback_updated"] for each in notebooks),
            "local_feedback_path": str(folder) if local else None,
            "sentence": sent.sentence,
        }


def _notebook(name: str, folder: Path, feedback: list[TreeFileOut]) -> Listed:
    """Return a notebook with the state of its feedback, on the site and locally."""
    page = folder / f"{name}{PAGE}"
    there = next((file.checksum for file in feedback if file.path == page.name), None)
    local = None
    if page.is_file():
        local = hashlib.md5(page.read_bytes(), usedforsecurity=False).hexdigest()
    return {
        "notebook_id": name,
        "path": "",
        "has_local_feedback": local is not None,
        "has_exchange_feedback": there is not None,
        "local_feedback_path": str(page) if local is not None else None,
        "feedback_updated": None not in (local, there) and local != there,
    }


def _lines(listed: Listed) -> Iterator[str]:
    """Format an entry as nbgrader's own exchange does."""
    submissions = listed.get("submissions")
    if not isinstance(submissions, list):
        fetched = " (already downloaded)" if listed["status"] == "fetched" else ""
        yield f"{listed['course_id']} {listed['assignment_id']}{fetched}"
        return
    for each in submissions:
        if each["has_local_feedback"] and not each["feedback_updated"]:
            feedback = "feedback already fetched"
        elif each["has_exchange_feedback"]:
            feedback = "feedback ready to be fetched"
        else:
            feedback = "no feedback available"
        yield (
            f"{each['course_id']} {each['student_id']} {each['assignment_id']} "
            f"{each['timestamp']} ({feedback}) {each['sentence']}"
        )
