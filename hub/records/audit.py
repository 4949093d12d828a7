"""Entries of the audit log, which is append-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .json_value import Json


class AuditAction(StrEnum):
    """The kind of change; views can filter by it."""

    GROUP_SET = "group set"
    GROUP_REMOVE = "group remove"
    TEACHERS_SET = "teachers set"
    MEMBER_ADD = "member add"
    MEMBER_REMOVE = "member remove"
    ROLE_SET = "role set"
    ACCOUNT_ADD = "account add"
    ACCOUNT_REMOVE = "account remove"
    NEW_PASSWORD = "new password"  # noqa: S105  # the name of an action
    ANNOUNCE = "announce"
    UNANNOUNCE = "unannounce"
    PASSWORD_LINK = "password link"  # noqa: S105  # the name of an action
    BACKUP = "backup"
    LOG_VERIFY = "log verify"
    TERM_SET = "term set"
    TERM_REMOVE = "term remove"
    RESERVE = "reserve"
    UNRESERVE = "unreserve"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    NODE_ADD = "node add"
    NODE_REMOVE = "node remove"
    REQUEST_CANCEL = "request cancel"
    REQUEST_HALT = "request halt"
    PIN = "pin"
    UNPIN = "unpin"
    COURSE_SET = "course set"
    ROSTER_SET = "roster set"
    ASSIGNMENT_SET = "assignment set"
    ASSIGNMENT_RELEASE = "assignment release"
    PREFIX_SET = "prefix set"
    REHEARSE = "rehearse"
    OFFICIAL_CHECKS_SET = "official checks set"
    LEADERBOARD_SET = "leaderboard set"
    SUBMISSION_CHOOSE = "submission choose"
    GRADE = "grade"
    POINTS_SET = "points set"
    FEEDBACK_RELEASE = "feedback release"
    EXTEND = "extend"
    OUTAGE = "outage"
    SECRET_SET = "secret set"  # noqa: S105  # the name of an action
    SECRET_REMOVE = "secret remove"  # noqa: S105  # the name of an action
    SECRET_USE = "secret use"  # noqa: S105  # the name of an action
    COMPILE_CACHE_CLEAR = "compile cache clear"
    GALLERY_FORK = "gallery fork"
    GALLERY_PUBLISH = "gallery publish"
    GALLERY_WITHDRAW = "gallery withdraw"
    PROGRAM_ADD = "program add"
    PROGRAM_APPROVE = "program approve"
    PROGRAM_REVOKE = "program revoke"
    PROGRAM_SUBMIT = "program submit"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change.

    Attributes:
        who: the user; ``cli:NAME`` for the system account NAME that ran a local command;
            ``carrel`` for the service.
        target: name of the group (with ``/`` and an assignment of it), user, device or node, or
            the id of the request or of the item of the gallery.
        why: the reason, if one was given.
        before, after: only the changed values; empty for a target that did not exist.
        id: 0 until it is stored; later entries have larger ids.
    """

    at: float
    who: str
    action: AuditAction
    target: str
    why: str = ""
    before: Mapping[str, Json] = field(default_factory=dict)
    after: Mapping[str, Json] = field(default_factory=dict)
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """A filter on the audit log: all given fields must match, None matches all.

    Attributes:
        older_than: only entries with a smaller id.
    """

    who: str | None = None
    action: AuditAction | None = None
    target: str | None = None
    older_than: int | None = None
    limit: int = 100


SERVICE = "carrel"
"""The author of changes that the service makes by itself, on a fault."""
