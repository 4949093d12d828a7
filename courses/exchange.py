"""The desk of courses in the words of ngshare's REST API.

What is refused begins with ngshare's own words and goes on with Carrel's sentence. Two things are
meant otherwise here: to strangers a course does not exist, and nothing is ever deleted, so that
deleting an assignment withdraws it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from ..hub.errors import CarrelError, Conflict, Forbidden, InvalidInput, NotFound
from ..hub.ports.world import Identity
from ..hub.wire.courses import ContentOut, FileIn, ParcelIn, ReceiptOut, ReleaseIn, SubmitIn
from ..hub.wire.exchange import (
    STAMP,
    TREE,
    SentOut,
    TakenOut,
    TreeFileIn,
    TreeFileOut,
    TreeOut,
    WhoOut,
)
from .carrying import content_out, given_parcel
from .desk import CourseDesk
from .model import Assignment, Role
from .parcels import checked_name
from .rights import Place
from .store.missing import no_assignment

_DIGITS = 10
_DENIED = "Permission denied (not course instructor)"


@dataclass(frozen=True, slots=True)
class Exchange:
    """Plain blocking functions with the rights of ``CourseDesk``."""

    desk: CourseDesk

    # -- courses and people ---------------------------------------------------------------

    def courses(self, who: Identity) -> list[str]:
        return [place.course.name for place in self.desk.places(who)]

    def instructors(self, who: Identity, course: str) -> list[WhoOut]:
        place = self._place(who, course)
        return [WhoOut(username=name) for name in self.desk.show(who, place.course.name).teachers]

    def students(self, who: Identity, course: str) -> list[WhoOut]:
        self._place(who, course)
        with _said(_DENIED, Forbidden):
            found = self.desk.members(who, course).members
        return [
            _named(member.person, member.full_name)
            for member in found
            if member.role == Role.STUDENT and member.left_at is None
        ]

    def student(self, who: Identity, course: str, name: str) -> WhoOut:
        """Oneself, or as a teacher or grader anybody."""
        place = self._place(who, course)
        if place.role is Role.STUDENT and name == who.name:
            return _named(name, place.member.full_name)
        return _one(self.students(who, course), name, "Student")

    def instructor(self, who: Identity, course: str, name: str) -> WhoOut:
        return _one(self.instructors(who, course), name, "Instructor")

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, who: Identity, course: str) -> list[str]:
        """Those that are released."""
        self._place(who, course)
        found = self.desk.assignments(who, course).assignments
        return [each.name for each in found if each.state != "not released"]

    def fetch(self, who: Identity, course: str, name: str, *, list_only: bool) -> TreeOut:
        """The hand-out; only a fetch of its contents is kept as one."""
        self._assignment(who, course, name)
        if list_only:
            files = self.desk.store.hand_out(course, name).files.files
            found = [content_out(self.desk.blobs, file) for file in files]
        else:
            found = self.desk.hand_out(who, course, name).files
        return _tree(found, list_only=list_only)

    def release(
        self, who: Identity, course: str, name: str, form: Form, *, force: bool = False
    ) -> None:
        """Hand out what the teacher's own nbgrader has made."""
        place = self._place(who, course)
        known = {each.name: each for each in self.desk.store.assignments(place.course.name)}
        with _said(_DENIED, Forbidden):
            self.desk.place(who, course, (Role.TEACHER,))
        if name in known and known[name].open and not force:
            raise Conflict(
                f"Assignment already exists. {name} of {course} is released.",
                accepted="Release it again by force, or withdraw it first.",
            )
        stripped = given_parcel(ParcelIn(files=_sent(form.files)))
        assert stripped is not None, "no files were refused"
        body = ReleaseIn(files=_sent(form.source) if form.source else [], due=form.due)
        self.desk.release(who, course, name, body, stripped=stripped)

    def withdraw(self, who: Identity, course: str, name: str) -> None:
        self._assignment(who, course, name)
        with _said(_DENIED, Forbidden):
            self.desk.withdraw(who, course, name)

    # -- submissions ----------------------------------------------------------------------

    def submit(self, who: Identity, course: str, name: str, form: Form) -> TakenOut:
        self._assignment(who, course, name)
        body = SubmitIn(files=_sent(form.files), version=form.answered_version())
        receipt = self.desk.submit(who, course, name, body)
        return TakenOut(
            timestamp=stamp(receipt.at), sha256=receipt.sha256, sentence=receipt.sentence
        )

    def submissions(
        self, who: Identity, course: str, name: str, student: str | None = None
    ) -> list[SentOut]:
        """Of everybody for those who grade, or of one student; the first one first."""
        place = self._assignment(who, course, name)
        if student is None and place.role is Role.STUDENT:
            raise Forbidden(f"{_DENIED}. You see your own.", accepted=f"…/{who.name}")
        return [
            SentOut(
                student_id=each.person,
                timestamp=stamp(each.at),
                counts=each.counts,
                standing=each.standing,
                sentence=each.sentence,
            )
            for each in self._receipts(who, course, name, student)
        ]

    def collect(
        self,
        who: Identity,
        course: str,
        name: str,
        student: str,
        *,
        timestamp: str = "",
        list_only: bool = False,
    ) -> TreeOut:
        """The files of a submission; of the last one where no time is named."""
        found = self._submission(who, course, name, student, timestamp)
        files = self.desk.handed_in(who, found.id).files
        return _tree(files, list_only=list_only, timestamp=stamp(found.at))

    # -- feedback -------------------------------------------------------------------------

    def give_back(self, who: Identity, course: str, name: str, student: str, form: Form) -> None:
        self._assignment(who, course, name)
        found = self._submission(who, course, name, student, form.wanted_timestamp())
        with _said(_DENIED, Forbidden):
            self.desk.give_back(who, found.id, ParcelIn(files=_sent(form.files)))

    def feedback(
        self,
        who: Identity,
        course: str,
        name: str,
        student: str,
        form: Form,
        *,
        list_only: bool = False,
    ) -> TreeOut:
        """What was given back on a submission; no files where nothing was yet."""
        found = self._submission(who, course, name, student, form.wanted_timestamp())
        files = self.desk.feedback(who, found.id)
        return _tree(files, list_only=list_only, timestamp=stamp(found.at))

    # -- within ---------------------------------------------------------------------------

    def _place(self, who: Identity, course: str) -> Place:
        with _said("Course not found", NotFound):
            return self.desk.place(who, course)

    def _assignment(self, who: Identity, course: str, name: str) -> Place:
        """One that is released; also teachers have no other in an exchange."""
        place = self._place(who, course)
        with _said("Assignment not found", NotFound):
            found: Assignment = self.desk.assignment(place, name)
            if not found.open:
                raise no_assignment(course, name)
        return place

    def _receipts(
        self, who: Identity, course: str, name: str, student: str | None
    ) -> list[ReceiptOut]:
        with _said(_DENIED, Forbidden):
            found = self.desk.receipts(who, course, name, person=student or "").receipts
        if student is not None and student != who.name and not found:
            with _said("Student not found", NotFound):
                self.desk.member_of(course, student)
        return found

    def _submission(
        self, who: Identity, course: str, name: str, student: str, timestamp: str
    ) -> ReceiptOut:
        self._assignment(who, course, name)
        wanted = _read_stamp(timestamp) if timestamp else ""
        found = self._receipts(who, course, name, student)
        same = [each for each in found if wanted in ("", stamp(each.at))]
        if not same:
            raise NotFound(
                f"Submission not found. {student[:80]} has handed in nothing at that time.",
                accepted=f"Times: {', '.join(stamp(each.at) for each in found[-3:]) or 'none'}.",
            )
        return same[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What came with a call; the last three are Carrel's own.

    Attributes:
        source: files, as the teacher wrote them.
        version: of the hand-out that a submission answers.
    """

    files: str | None = None
    timestamp: str | None = None
    source: str | None = None
    due: str | None = None
    version: str | None = None

    def answered_version(self) -> int:
        """0 where none is said."""
        said = self.version or "0"
        if not (said.isascii() and said.isdigit() and len(said) < _DIGITS):
            raise InvalidInput(
                f"{said[:80]!r} is no version of a hand-out.", accepted="A number.", field="version"
            )
        return int(said)

    def wanted_timestamp(self) -> str:
        if not self.timestamp:
            raise InvalidInput(
                "Please supply timestamp.",
                accepted=f"{STAMP!r}, as it was listed.",
                field="timestamp",
            )
        return self.timestamp


# -- values -----------------------------------------------------------------------------------


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(STAMP)


def _read_stamp(text: str) -> str:
    """As ``stamp`` writes it; also without its zone."""
    for form in (STAMP, STAMP.removesuffix(" %Z")):
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).strftime(STAMP)
        except ValueError:
            continue
    raise InvalidInput(
        f"Time format incorrect. {text[:80]!r} is not understood.",
        accepted="As in '2027-01-30 10:30:47.524219 UTC'.",
        field="timestamp",
    )


def _sent(tree: str | None) -> list[FileIn]:
    """The files of a form's field, with names, contents and checksums looked at."""
    if not tree:
        raise InvalidInput("Please supply files.", accepted="A list, as JSON.", field="files")
    try:
        files = TREE.validate_json(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(
            f"Files cannot be JSON decoded. {where}: {first['msg']}.".replace(". : ", ". "),
            accepted="A list of objects with 'path' and 'content'.",
            field="files",
        ) from None
    if not files:
        raise InvalidInput("Please supply files.", accepted="One at least.", field="files")
    return [_file(file) for file in files]


def _file(file: TreeFileIn) -> FileIn:
    with _said("Illegal path", InvalidInput):
        name = checked_name(file.path)
    # ngshare's clients break base64 into lines.
    content = "".join(file.content.split())
    try:
        data = base64.b64decode(content.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InvalidInput(
            f"Content cannot be base64 decoded. It is that of {name!r}.",
            accepted="Base64.",
            field="files",
        ) from None
    if file.checksum is not None and file.checksum.lower() != _md5(data):
        raise InvalidInput(
            f"Checksum mismatch. {name!r} is not what was sent.",
            accepted="The MD5 of its content, or none.",
            field="files",
        )
    return FileIn(name=name, content=content)


def _tree(files: Iterable[ContentOut], *, list_only: bool, timestamp: str | None = None) -> TreeOut:
    found = [
        TreeFileOut(
            path=file.name,
            checksum=_md5(base64.b64decode(file.content)),
            content=None if list_only else file.content,
        )
        for file in files
    ]
    return TreeOut(files=found, timestamp=timestamp)


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _named(username: str, full_name: str) -> WhoOut:
    first, _, last = full_name.rpartition(" ")
    return WhoOut(username=username, first_name=first or None, last_name=last or None)


def _one(people: Iterable[WhoOut], name: str, kind: str) -> WhoOut:
    for each in people:
        if each.username == name:
            return each
    raise NotFound(f"{kind} not found. Nobody here is called {name[:80]!r}.")


@contextmanager
def _said(words: str, kind: type[CarrelError]) -> Iterator[None]:
    """ngshare's words in front of Carrel's sentence."""
    try:
        yield
    except kind as error:
        said = f"{words}. {error.message}"
        raise type(error)(said, accepted=error.accepted, field=error.field) from error
