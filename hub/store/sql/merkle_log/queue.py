"""Queue a written row for the log, in the transaction that writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, insert

from ....records.audit import AuditAction
from ..tables.merkle_log import log_queue

GRADE_ACTIONS: Final = (AuditAction.POINTS_SET, AuditAction.SUBMISSION_CHOOSE)
"""Actions whose entries of the audit log are lines: they decide a grade before its release."""
PRIVATE_SCORES: Final = "leaderboard_private_scores"
"""The source of the private scores of leaderboards, which students do not see in their proofs."""


def queue_line(connection: Connection, source: str, key: Sequence[object]) -> None:
    """Queue the row of the table ``source`` with this primary key."""
    connection.execute(insert(log_queue).values(source=source, row_key=key_text(key)))


def key_text(key: Sequence[object]) -> str:
    """Return a primary key as text, the columns separated by a slash."""
    return "/".join(map(str, key))
