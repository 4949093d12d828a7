"""The tables whose rows are lines of the log: their columns, keys and logs.

The columns are listed, because the hashes of old lines must not change when a table gets another
column. A new column belongs into the log as a new format of lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    and_,
    cast,
    exists,
    literal,
    or_,
    select,
)

from ..tables.core import changes, ledger
from ..tables.courses import feedback, leaderboard_entries, submissions, verdicts
from ..tables.merkle_log import log_leaves, log_queue
from .queue import GRADE_ACTIONS, PRIVATE_SCORES

_CHUNK = 400
"""Keys in one query: SQLite and PostgreSQL limit the number of parameters."""
UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, OverflowError)
"""What is raised where a column or a key has a value that the service never writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSource:
    """A table whose rows are lines.

    Attributes:
        columns: that are in the log.
        key: names of the columns of the primary key.
        log: the column from which ``log_of`` makes the log of a row: the name of its group, or of
            its course.
        only: which rows of the table are lines; None for all of them.
        replaced: whether a row may be replaced by a newer one, which is a line again.
        part: the name of the source, where some columns of a table are lines of their own, because
            not everyone who may see the others may see them.
    """

    table: Table
    columns: tuple[str, ...]
    key: tuple[str, ...]
    log: ColumnElement[str]
    log_of: Callable[[str], str] = str
    only: ColumnElement[bool] | None = None
    replaced: bool = False
    part: str = ""

    @property
    def name(self) -> str:
        return self.part or self.table.name

    def rows(self, connection: Connection, keys: Sequence[str]) -> dict[str, LoggedRow]:
        """Return the rows with these keys, by key."""
        found: dict[str, LoggedRow] = {}
        for start in range(0, len(keys), _CHUNK):
            query = self._select().where(self._among(keys[start : start + _CHUNK]))
            for row in connection.execute(query):
                values = dict(row._mapping)
                log = self.log_of(values.pop("the_log"))
                key = "/".join(str(values[name]) for name in self.key)
                found[key] = LoggedRow(log=log, columns=values)
        return found

    def readable_rows(
        self, connection: Connection, keys: Sequence[str]
    ) -> tuple[dict[str, LoggedRow], dict[str, str]]:
        """Return the rows with these keys, and why others cannot be read, both by key."""
        try:
            return self.rows(connection, keys), {}
        except UNREADABLE:
            pass
        found: dict[str, LoggedRow] = {}
        unreadable: dict[str, str] = {}
        for key in keys:
            try:
                found.update(self.rows(connection, [key]))
            except UNREADABLE as error:
                unreadable[key] = f"{type(error).__name__}: {error}"
        return found, unreadable

    def outside(self, limit: int) -> Select[str]:
        """Return the query for the keys of rows that are neither in the log nor in its queue."""
        key = self.key_column()
        here: ColumnElement[bool] = or_(
            *(
                exists().where(each.c.source == self.name, each.c.row_key == key)
                for each in (log_leaves, log_queue)
            )
        )
        query = select(key).where(~here).limit(limit)
        return query if self.only is None else query.where(self.only)

    def key_column(self) -> ColumnElement[str]:
        """Return the primary key as text in SQL."""
        first, *rest = (cast(self.table.c[name], String) for name in self.key)
        key: ColumnElement[str] = first
        for each in rest:
            key = key + literal("/") + each
        return key

    def _select(self) -> Select[Any]:
        query = select(*(self.table.c[name] for name in self.columns), self.log.label("the_log"))
        if self.log.table is not self.table:
            query = query.join(submissions, submissions.c.id == self.table.c.submission)
        return query

    def _among(self, keys: Sequence[str]) -> ColumnElement[bool]:
        if len(self.key) == 1:
            if isinstance(self.table.c[self.key[0]].type, String):
                return self.table.c[self.key[0]].in_(keys)
            return self.table.c[self.key[0]].in_([int(key) for key in keys])
        # Keys of verdicts: a request and the number of a submission.
        conditions = []
        for key in keys:
            request, _, submission = key.rpartition("/")
            conditions.append(
                and_(self.table.c.request == request, self.table.c.submission == int(submission))
            )
        return or_(*conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRow:
    """The columns of a row that are in the log, and the name of its log."""

    log: str
    columns: Mapping[str, Any]


_LEDGER = LineSource(
    table=ledger,
    columns=(
        *("id", "lease_id", "request_id", "epoch", "owner", "group_name", "devices"),
        *("starts_at", "ends_at", "device_seconds", "kind"),
    ),
    key=("id",),
    log=ledger.c.group_name,
)
_SUBMISSIONS = LineSource(
    table=submissions,
    columns=("id", "course", "assignment", "person", "number", "at", "files", "version"),
    key=("id",),
    log=submissions.c.course,
)
_VERDICTS = LineSource(
    table=verdicts,
    columns=("request", "submission", "at", "seconds", "cells", "notes", "why_not"),
    key=("request", "submission"),
    log=submissions.c.course,
)
_FEEDBACK = LineSource(
    table=feedback,
    columns=("submission", "files", "released_at", "released_by"),
    key=("submission",),
    log=submissions.c.course,
    replaced=True,
)
_GRADE_CHANGES = LineSource(
    table=changes,
    columns=("id", "at", "who", "action", "target", "why", "before", "after"),
    key=("id",),
    log=changes.c.target,
    log_of=lambda target: target.partition("/")[0],
    only=changes.c.action.in_(sorted(map(str, GRADE_ACTIONS))),
)
# A submission to a leaderboard is a line once it has a verdict, which is final.
_LEADERBOARD = LineSource(
    table=leaderboard_entries,
    columns=(
        *("id", "course", "assignment", "person", "request", "sha256", "size", "sent_at"),
        *("outcome", "sentence", "public"),
    ),
    key=("id",),
    log=leaderboard_entries.c.course,
    only=leaderboard_entries.c.outcome != "",
)
_PRIVATE_SCORES = LineSource(
    table=leaderboard_entries,
    columns=("id", "private"),
    key=("id",),
    log=leaderboard_entries.c.course,
    only=leaderboard_entries.c.private.is_not(None),
    part=PRIVATE_SCORES,
)
SOURCES: Mapping[str, LineSource] = MappingProxyType(
    {
        each.name: each
        for each in (
            *(_SUBMISSIONS, _VERDICTS, _GRADE_CHANGES, _FEEDBACK, _LEDGER),
            *(_LEADERBOARD, _PRIVATE_SCORES),
        )
    }
)
