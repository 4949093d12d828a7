"""The teachers' part of nbgrader's exchange: release, collect, and return feedback."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.exchange import abc

from ...hub.client.transport.calls import RELEASE_SECONDS
from ...hub.schemas.ngshare import DoneOut, NamesOut, SentListOut, SentOut, TreeOut
from .exchange import PAGE, TIMESTAMP_FILE, Exchange, pack, parse_timestamp, unpack

_ON_TIME = "on time"
_SQLITE = "sqlite:///"
_DUE = "%Y-%m-%d %H:%M UTC"


class ExchangeReleaseAssignment(Exchange, abc.ExchangeReleaseAssignment):  # type: ignore[misc]
    """Release what ``nbgrader generate_assignment`` made, with the source for grading.

    A due date in the gradebook becomes Carrel's.
    """

    def init_src(self) -> None:
        self.src_path = self._folder(self.coursedir.release_directory)
        self.source_path = self._folder(self.coursedir.source_directory)
        if not self.src_path.is_dir():
            if self.source_path.is_dir():
                self.fail(
                    f"Assignment found in '{self.source_path}' but not '{self.src_path}', run "
                    "`nbgrader generate_assignment` first."
                )
            self.fail(f"Assignment not found at: {self.src_path}")

    def copy_files(self) -> None:
        course, assignment = self.course, self.assignment
        names = self.client.exchange_get(("assignments", course), NamesOut).assignments or []
        if assignment in names and not self.force:
            self.fail(
                f"Destination already exists, add --force to overwrite: {course} {assignment}"
            )
        form = {"files": pack(self.read(self.src_path)), "force": "true"}
        if self.source_path.is_dir():
            form["source"] = pack(self.read(self.source_path))
        if due := self._due():
            form["due"] = due
        place = "assignment", course, assignment
        self.client.exchange_post(place, DoneOut, form, silence=RELEASE_SECONDS)
        self.log.info("Released as: %s %s", course, assignment)

    def _folder(self, step: str) -> Path:
        return Path(self.coursedir.format_path(step, ".", self.assignment))

    def _due(self) -> str:
        """Return the due date; empty if the gradebook has none, or does not exist yet."""
        url = self.coursedir.db_url
        if url.startswith(_SQLITE) and not Path(url.removeprefix(_SQLITE)).exists():
            return ""
        with Gradebook(url, self.course) as gradebook:
            try:
                due = gradebook.find_assignment(self.assignment).duedate
            except MissingEntry:
                return ""
        return "" if due is None else str(due.strftime(_DUE))


class ExchangeCollect(Exchange, abc.ExchangeCollect):  # type: ignore[misc]
    """Collect of each student the submission that counts, after late rule and extensions.

    With ``--before-duedate`` the last one on time, if there is one.
    """

    def copy_files(self) -> None:
        course, assignment = self.course, self.assignment
        path: tuple[str, ...] = ("submissions", course, assignment)
        if self.coursedir.student_id not in {"", "*"}:
            path = (*path, self.coursedir.student_id)
        by_student: dict[str, list[SentOut]] = defaultdict(list)
        for each in self.client.exchange_get(path, SentListOut).submissions:
            by_student[each.student_id].append(each)
        if not by_student:
            self.log.warning("No submissions of %r for course %r to collect", assignment, course)
        for sent in by_student.values():
            self._collect(self._select(sent))

    def _select(self, sent: list[SentOut]) -> SentOut:
        on_time = [each for each in sent if each.standing == _ON_TIME]
        if self.before_duedate and on_time:
            return on_time[-1]
        return next((each for each in sent if each.counts), sent[-1])

    def _collect(self, sent: SentOut) -> None:
        student = sent.student_id
        folder = Path(
            self.coursedir.format_path(self.coursedir.submitted_directory, student, self.assignment)
        )
        if folder.is_dir():
            existing = self.coursedir.get_existing_timestamp(str(folder))
            same = existing is not None and existing == parse_timestamp(sent.timestamp)
            if same or not (self.update or self.before_duedate):
                message = "is collected already" if same else "exists, use --update to update"
                self.log.info("Submission %s: %s %s", message, student, self.assignment)
                return
        at = ("submission", self.course, self.assignment, student)
        found = self.client.exchange_get(at, TreeOut, {"timestamp": sent.timestamp})
        # Atomic: a half-filled folder would look like a submission.
        draft = folder.with_name(f".{folder.name}.collecting")
        shutil.rmtree(draft, ignore_errors=True)
        unpack(found.files, draft)
        (draft / TIMESTAMP_FILE).write_text(sent.timestamp)
        if folder.is_dir():
            shutil.rmtree(folder)
        draft.rename(folder)
        self.log.info("Collected: %s %s. %s", student, self.assignment, sent.sentence)


class ExchangeReleaseFeedback(Exchange, abc.ExchangeReleaseFeedback):  # type: ignore[misc]
    """Return what ``nbgrader generate_feedback`` made, for the submission that it belongs to."""

    def copy_files(self) -> None:
        assignment = self.assignment
        excluded = set(filter(None, self.coursedir.student_id_exclude.split(",")))
        root = Path(self.coursedir.format_path(self.coursedir.feedback_directory, "*", assignment))
        student_part = root.parts.index("*")
        base = Path(*root.parts[:student_part])
        pattern = str(Path(self.coursedir.student_id or "*", *root.parts[student_part + 1 :]))
        folders = sorted(each for each in base.glob(pattern) if each.is_dir())
        if not folders:
            self.log.warning("There is no feedback in %s", root)
        for folder in folders:
            student = folder.parts[student_part]
            if student not in excluded:
                self._return_feedback(student, folder)

    def _return_feedback(self, student: str, folder: Path) -> None:
        written = folder / TIMESTAMP_FILE
        if not written.is_file():
            self.log.error("%s names no submission; collect it again", folder)
            return
        pages = {page.name: page.read_bytes() for page in sorted(folder.glob(f"*{PAGE}"))}
        at = ("feedback", self.course, self.assignment, student)
        form = {"timestamp": written.read_text().strip(), "files": pack(pages)}
        self.client.exchange_post(at, DoneOut, form)
        self.log.info("Released feedback: %s %s", student, self.assignment)
