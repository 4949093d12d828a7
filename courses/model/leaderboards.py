"""The values of leaderboards: the rule of an assignment, and the submissions of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from ...hub.records.audit import AuditEntry
from ...hub.schemas.coursework.leaderboards import Counts, Metric
from .records import Folder

SCORED_AT_ONCE: Final = 32
"""Submissions that are scored together; then their results are stored."""


class EntryOutcome(StrEnum):
    """How the evaluation of weights ended. All but ``SCORED`` cost no submission of the day.

    ``STOPPED``: twice, by the time or the memory that this file alone took. ``FAULT``: the system
    or the teacher's files failed.
    """

    WAITING = ""
    SCORED = "scored"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAULT = "fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """The leaderboard of an assignment.

    Attributes:
        per_day: submissions of one student that are scored on one day of the assignment's time
            zone; 0 where nothing can be submitted any more.
        public_percent: the part of the hidden examples for the public score.
        counts: which submission of a student is in the table, by the public score.
        files: ``leaderboard.py`` and what it reads.
        seed: hexadecimal; decides the public examples and the pseudonyms.
        by: the teacher who opened it: the owner of the requests.
    """

    course: str
    assignment: str
    metric: Metric
    per_day: int
    public_percent: int
    counts: Counts
    private_after_due: bool
    files: Folder
    seed: str
    by: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardEntry:
    """One submission of weights.

    Attributes:
        request: the id of the request that evaluates it, with others; empty while it waits for the
            next one, and for a file that was refused before.
        sha256, size: of the file.
        sentence: the verdict for the student. Of one that waits: why it is evaluated once more,
            and how many requests ended before they came to it; empty for its first evaluation.
        public, private: the scores; None unless it is scored.
    """

    id: str
    course: str
    assignment: str
    person: str
    request: str
    sha256: str
    size: int
    sent_at: float
    outcome: EntryOutcome = EntryOutcome.WAITING
    sentence: str = ""
    public: float | None = None
    private: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCounts:
    """Submissions to one assignment. A verdict is final: with equal counts no table differs."""

    sent: int
    waiting: int


class LeaderboardStore(Protocol):
    """Stores leaderboards. Each method is one transaction; ``change`` goes to the audit log."""

    def rule(self, course: str, assignment: str) -> Leaderboard | None: ...

    def put_rule(self, rule: Leaderboard, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def entries(
        self, course: str, assignment: str, person: str | None = None
    ) -> Sequence[LeaderboardEntry]:
        """The submissions of weights to an assignment, newest first."""

    def waiting_in(self, course: str, assignment: str) -> Sequence[LeaderboardEntry]:
        """The submissions to an assignment that wait for a verdict, newest first."""

    def counts(self, course: str, assignment: str) -> EntryCounts:
        """How many submissions there are; found by indexes, without reading them."""

    def add(self, *entries: LeaderboardEntry, change: AuditEntry | None = None) -> None: ...

    def waiting(self) -> Sequence[tuple[str, str]]:
        """Course and assignment of each leaderboard with submissions that wait for a verdict."""

    def change_waiting(self, entries: Sequence[LeaderboardEntry]) -> None:
        """Store how submissions that wait go on; one that has a verdict stays as it is."""
