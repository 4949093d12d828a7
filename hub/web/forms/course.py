"""Forms for the teachers of a course, and the request bodies that they produce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Self, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ValidationError

from ....courses.deadlines import rules as due
from ...accounts.usernames import normalise, split_names
from ...errors import InvalidInput
from ...messages.validation import invalid_body
from ...records.audit import AuditEntry
from ...schemas import parsers
from ...schemas.courses import (
    AssignmentOut,
    CloneIn,
    CourseIn,
    ExtensionIn,
    FileIn,
    OutageIn,
    PrefixIn,
    ReleaseIn,
)
from ...schemas.coursework.official_checks import MOST_PER_DAY, OfficialCheckRuleIn
from ...schemas.names import USER_LENGTH
from . import pickers
from .edits import as_before, earlier_values
from .fields import read
from .late_rule import LateForm
from .pickers import shown_span

M = TypeVar("M", bound=BaseModel)
_NAMES = 100
_LONGEST_NAME = 64
_SECTION = "section:"
"""Prefix of section names in lists of students and sections."""


def names(text: str) -> list[str]:
    """Return the user names of a list."""
    return [normalise(name)[:USER_LENGTH] for name in split_names(text)][:_NAMES]


def _valid(model: type[M], field: str = "", **given: object) -> M:
    """Validate a body; ``field`` is the form field of ``seconds`` in the model.

    Raises:
        InvalidInput: a value is invalid.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        invalid = invalid_body(error, model)
        invalid.field = field if invalid.field == "seconds" else invalid.field
        raise invalid from None


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseForm:
    """The form for a new course.

    Attributes:
        students: the roster of the preview, so that it need not be selected again.
    """

    name: str = ""
    title: str = ""
    teachers: str = ""
    image: str = ""
    parent: str = ""
    guaranteed: str = ""
    max_devices: str = ""
    max_devices_per_user: str = ""
    budget: str = ""
    students: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> Self:
        given = {each.name: fields.get(each.name, "").strip() for each in dataclass_fields(cls)}
        given |= {"name": given["name"].lower(), "budget": pickers.budget(fields, "budget")}
        given["teachers"] = pickers.chosen(fields, "teachers", split_names)
        return cls(**given)

    def body(self) -> CourseIn:
        """Return the body of the request. Raises InvalidInput with the field."""
        if not self.name:
            raise InvalidInput(
                "The name of the course is missing.", accepted="Such as cs101.", field="name"
            )
        return _valid(
            CourseIn,
            name=self.name[:_LONGEST_NAME],
            title=self.title[:200],
            teachers=names(self.teachers),
            students=self.students,
            image=self.image[:160],
            parent=self.parent[:_LONGEST_NAME] or None,
            guaranteed=self._number("guaranteed", self.guaranteed),
            max_devices=self._number("max_devices", self.max_devices),
            max_devices_per_user=self._number("max_devices_per_user", self.max_devices_per_user),
            budget=read(parsers.budget, self.budget, "budget") if self.budget else None,
        )

    def _number(self, field: str, text: str) -> int | None:
        """Return None for an empty field, which keeps the current value."""
        return read(parsers.devices, text, field) if text else None


def clone_body(fields: Mapping[str, str]) -> CloneIn:
    """Return the body of a copy. Raises InvalidInput with the field."""
    name = fields.get("name", "").strip().lower()[:_LONGEST_NAME]
    if not name:
        raise InvalidInput(
            "The name of the new course is missing.", accepted="Such as cs102.", field="name"
        )
    return _valid(
        CloneIn,
        name=name,
        title=fields.get("title", "").strip()[:200],
        teachers=names(pickers.chosen(fields, "teachers", split_names)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseForm:
    """The form to release an assignment; includes all settings but the files.

    Attributes:
        due: local time as sent by browsers, ``2027-02-01T18:00``; empty for no due date.
        zone: the time zone of ``due``.
    """

    assignment: str = ""
    due: str = ""
    zone: str = ""
    late: LateForm = field(default_factory=LateForm)
    devices: str = "0"
    time: str = "10m"

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> Self:
        def entry(name: str) -> str:
            return fields.get(name, "").strip()

        return cls(
            assignment=entry("assignment"),
            due=entry("due"),
            zone=entry("zone"),
            late=LateForm.filled(fields),
            devices=entry("devices"),
            time=pickers.span(fields, "time"),
        )

    @classmethod
    def of(cls, assignment: AssignmentOut, later: Sequence[AuditEntry] = ()) -> Self:
        """Return the form of an assignment, as it was before later changes."""
        names = {"due": "class_due", "max_seconds": "seconds"}
        old = {names.get(name, name): value for name, value in earlier_values(later).items()}
        assignment = as_before(assignment, old)
        at = assignment.class_due
        return cls(
            assignment=assignment.name,
            due="" if at is None else clock_text(at, assignment.zone),
            zone="" if at is None else assignment.zone,
            late=LateForm.of(assignment.late),
            devices=str(assignment.devices),
            time=shown_span(assignment.seconds),
        )

    def body(self, files: list[FileIn], *, ungraded: bool = False) -> ReleaseIn:
        """Return the body of a release. Raises InvalidInput with the field."""
        return _valid(
            ReleaseIn,
            "time",
            files=files,
            ungraded=ungraded,
            due=moment_text(self.due, self.zone),
            late=self.late.text(),
            devices=read(parsers.devices, self.devices or "0", "devices"),
            seconds=read(parsers.seconds, self.time, "time"),
        )


def prefix_body(fields: Mapping[str, str]) -> PrefixIn:
    """Return the body that switches a prefix on or off. Raises InvalidInput with the field."""
    if fields.get("on") != "yes":
        return PrefixIn(on=False)
    devices = read(parsers.devices, fields.get("devices", "")[:20] or "0", "devices")
    return _valid(PrefixIn, on=True, devices=devices)


def official_check_body(fields: Mapping[str, str]) -> OfficialCheckRuleIn:
    """Return the body that allows official checks. Raises InvalidInput."""
    text = fields.get("per_day", "").strip()[:20]
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PER_DAY:
        raise InvalidInput(
            f"{text or 'Nothing'} is not a number of official checks a day.",
            accepted=f"1 to {MOST_PER_DAY}; “Allow none” ends them.",
        )
    return OfficialCheckRuleIn(per_day=int(text), names_cells=fields.get("names_cells") == "yes")


def clock_text(at: float, zone: str) -> str:
    """Format a time in a time zone as the value of a ``datetime-local`` field."""
    local = datetime.fromtimestamp(at, ZoneInfo(zone)).replace(tzinfo=None)
    return local.isoformat(timespec="seconds" if local.second else "minutes")


def moment_text(text: str, zone: str) -> str:
    """Combine a local time, as sent by browsers, with its time zone; empty for none.

    Raises:
        InvalidInput: the zone is unknown; with the field ``zone``.
    """
    return f"{text.replace('T', ' ')} {parsers.time_zone(zone or 'UTC').key}" if text else ""


def extension_body(fields: Mapping[str, str]) -> ExtensionIn:
    """Return the body of an extension. Raises InvalidInput with the field."""
    person, section = person_or_section(fields)
    return _valid(
        ExtensionIn,
        "span",
        person=person,
        section=section,
        seconds=read(parsers.seconds, pickers.span(fields, "span"), "span"),
        why=fields.get("why", "").strip()[:500],
    )


def person_or_section(fields: Mapping[str, str]) -> tuple[str, str]:
    """Return either a student or a section. Raises InvalidInput if neither is selected."""
    whom = fields.get("whom", "").strip()
    if not whom:
        raise InvalidInput(
            "No student or section is selected.", accepted="A student or a section.", field="person"
        )
    if whom.startswith(_SECTION):
        return "", whom.removeprefix(_SECTION).strip()[:200]
    return whom[:USER_LENGTH], ""


def outage_body(fields: Mapping[str, str], course: str) -> OutageIn:
    """Return an outage of this course, or of all courses. Raises InvalidInput with the field."""

    def moment(field: str) -> float:
        text = moment_text(fields.get(field, "").strip(), fields.get("zone", "").strip())
        return read(due.read_due, text, field)[0]

    return _valid(
        OutageIn,
        starts_at=moment("starts_at"),
        ends_at=moment("ends_at"),
        course="" if fields.get("all") == "yes" else course,
        why=fields.get("why", "").strip()[:500],
    )
