"""Detect that what a form or a caller of the API edits has changed since it was read.

The version of everything that administrators and teachers edit is one number: the id of the newest
audit entry. A page puts it into its forms and the API into the header ``ETag``; a change that
comes back with it is refused if a later entry is about the same thing.

The version belongs to one request: it is kept in a context variable, which the threads that serve
the request inherit. Changes without a version, such as of the command line, are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from ..errors import Conflict
from .audit import AuditAction, AuditEntry
from .json_value import Json

_MOST_NAMED = 5


class ChangedMeanwhile(Conflict):
    """What was edited has changed since the form was made.

    ``later`` are the audit entries of these changes, newest first; empty in a client.
    """

    code = "changed_meanwhile"
    http_status = 412

    def __init__(
        self,
        message: str,
        *,
        accepted: str = "",
        field: str = "",
        later: Sequence[AuditEntry] = (),
    ) -> None:
        super().__init__(message, accepted=accepted, field=field)
        self.later = tuple(later)


@dataclass(slots=True)
class EditVersion:
    """The version that the changes of one request are based on.

    Attributes:
        newest: id of the newest audit entry at that time.
        own: ids of the entries that the request itself has added.
    """

    newest: int
    own: set[int] = field(default_factory=set)


_version: ContextVar[EditVersion | None] = ContextVar("edit_version", default=None)


def base_on(version: int) -> None:
    """Refuse later changes of this request that are older than the state of the thing."""
    _version.set(EditVersion(version))


def current() -> EditVersion | None:
    return _version.get()


_MEMBERS = frozenset({AuditAction.MEMBER_ADD, AuditAction.MEMBER_REMOVE})
_ASSIGNMENT = frozenset({AuditAction.ASSIGNMENT_SET, AuditAction.ASSIGNMENT_RELEASE})


def _families(*families: frozenset[AuditAction]) -> Mapping[AuditAction, frozenset[AuditAction]]:
    return {action: family for family in families for action in family}


RELATED: Mapping[AuditAction, frozenset[AuditAction]] = MappingProxyType(
    {
        **_families(
            frozenset({AuditAction.GROUP_SET, AuditAction.GROUP_REMOVE, AuditAction.TEACHERS_SET}),
            frozenset({AuditAction.TERM_SET, AuditAction.TERM_REMOVE}),
            frozenset({AuditAction.RESERVE, AuditAction.UNRESERVE}),
            frozenset({AuditAction.ANNOUNCE, AuditAction.UNANNOUNCE}),
            frozenset(
                {
                    AuditAction.DRAIN,
                    AuditAction.UNDRAIN,
                    AuditAction.QUARANTINE,
                    AuditAction.RELEASE,
                }
            ),
            frozenset({AuditAction.PIN, AuditAction.UNPIN}),
            frozenset(
                {
                    AuditAction.ACCOUNT_ADD,
                    AuditAction.ACCOUNT_REMOVE,
                    AuditAction.NEW_PASSWORD,
                    AuditAction.PASSWORD_LINK,
                }
            ),
            _ASSIGNMENT,
            frozenset({AuditAction.COURSE_SET}),
            frozenset({AuditAction.GRADE}),
            frozenset({AuditAction.POINTS_SET}),
            frozenset({AuditAction.SUBMISSION_CHOOSE}),
            frozenset({AuditAction.FEEDBACK_RELEASE}),
            frozenset({AuditAction.OUTAGE}),
        ),
        # A roster sets teachers without showing the quota.
        AuditAction.TEACHERS_SET: frozenset({AuditAction.TEACHERS_SET, AuditAction.GROUP_REMOVE}),
        AuditAction.ROLE_SET: _MEMBERS | {AuditAction.ROLE_SET, AuditAction.ACCOUNT_REMOVE},
        AuditAction.ROSTER_SET: _MEMBERS | {AuditAction.ROSTER_SET, AuditAction.TEACHERS_SET},
        AuditAction.EXTEND: _ASSIGNMENT | {AuditAction.EXTEND},
        AuditAction.PREFIX_SET: _ASSIGNMENT | {AuditAction.PREFIX_SET},
        AuditAction.OFFICIAL_CHECKS_SET: _ASSIGNMENT | {AuditAction.OFFICIAL_CHECKS_SET},
        AuditAction.LEADERBOARD_SET: _ASSIGNMENT | {AuditAction.LEADERBOARD_SET},
    }
)
"""The changes that may be about the same thing as a change. Others are not checked."""

_PARTS: Mapping[AuditAction, str] = MappingProxyType(
    {
        AuditAction.UNRESERVE: "id",
        AuditAction.PIN: "image",
        AuditAction.UNPIN: "image",
        AuditAction.EXTEND: "for",
        AuditAction.SUBMISSION_CHOOSE: "person",
        AuditAction.POINTS_SET: "of",
        AuditAction.FEEDBACK_RELEASE: "person",
    }
)
"""The value that tells two things of the same target apart."""


def same_thing(change: AuditEntry, other: AuditEntry) -> bool:
    """Return whether another change, of a related action, is about what this one changes."""
    if other.action in _MEMBERS and change.action is not AuditAction.ROLE_SET:
        return _value(other, "group") == change.target
    name = _PARTS.get(change.action, "")
    mine, theirs = _value(change, name), _value(other, name)
    if change.action is AuditAction.UNRESERVE:
        return mine == theirs
    if change.action is AuditAction.RESERVE and "id" in change.before:
        return change.before["id"] == _value(other, "id")
    if mine is not None and theirs is not None and mine != theirs:
        return False
    everywhere = change.action is AuditAction.OUTAGE and "" in (change.target, other.target)
    return everywhere or other.target == change.target


def _value(entry: AuditEntry, name: str) -> Json:
    return entry.after.get(name, entry.before.get(name))


def check_unchanged(later: Sequence[AuditEntry]) -> None:
    """Raise ChangedMeanwhile for changes that were made after the version."""
    if later:
        named = ", ".join(_sentence(each) for each in later[:_MOST_NAMED])
        more = f" and {len(later) - _MOST_NAMED} more" if len(later) > _MOST_NAMED else ""
        raise ChangedMeanwhile(
            f"It has changed since you read it: {named}{more}.",
            accepted="Nothing was saved. Compare with the current values, then repeat the change.",
            later=later,
        )


def _sentence(entry: AuditEntry) -> str:
    at = datetime.fromtimestamp(entry.at, UTC)
    about = f" of {entry.target}" if entry.target else ""
    return f"{entry.action}{about} by {entry.who} at {at:%Y-%m-%d %H:%M} UTC"
