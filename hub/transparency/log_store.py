"""``SqlLogStore``: the log that can be proved; every method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, exists, func, or_, select, update

from ..errors import NotFound, Unavailable
from ..proofs.document import ProofDocument, SignedHead
from ..proofs.verification import Head
from ..store.sql.merkle_log.growth import Sign, enter_lines, make_head
from ..store.sql.merkle_log.line_proofs import Leaf, leaves_of, not_anchored, proof_of
from ..store.sql.merkle_log.sources import SOURCES
from ..store.sql.merkle_log.verification import Advance, LogFinding, ReadHead, verify_log
from ..store.sql.tables.core import ledger
from ..store.sql.tables.courses import feedback, leaderboard_entries, submissions
from ..store.sql.tables.merkle_log import log_anchors, log_heads, log_leaves, log_queue, logs
from ..store.sql.transactions import Transactions
from .recorded_head import RecordedHeadFile

BATCH = 250
"""Lines that one transaction enters; others wait for it to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """Sizes and publication of the log.

    Attributes:
        sizes: the number of lines of each group's log, by name.
        queued: lines that are not entered yet.
        anchors: the size of the main log.
        unpublished: heads that are not at the place outside.
        unpublished_since: when the first of them was signed; None without any.
        error: why the last publication failed; empty if it did not.
        head: the newest head; None before the first.
        signed_at: when it was signed.
        published_at: when a head was published last.
    """

    sizes: dict[str, int]
    queued: int
    anchors: int
    unpublished: int
    unpublished_since: float | None
    error: str
    head: SignedHead | None
    signed_at: float | None
    published_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedLine:
    """A line whose row was written again later, as when feedback is released once more.

    Attributes:
        position: of the line in the log.
        row: the primary key of the row.
        entered_at: when the replaced line was entered, in seconds since 1970.
    """

    log: str
    position: int
    table: str
    row: str
    entered_at: float


class SqlLogStore:
    """The log on ``SqlStore.transactions``; usable from any thread."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._recorded = RecordedHeadFile.beside(transactions.file)

    def enter_lines(self, now: float) -> int:
        """Enter up to ``BATCH`` queued lines; return how many. Safe to repeat after a crash."""
        if not self._transactions.read(_queued):
            return 0
        return self._transactions.write(lambda c: enter_lines(c, now=now, limit=BATCH))

    def make_head(self, *, site: str, now: float, sign: Sign) -> bool:
        """Anchor the logs that have grown and sign a head; return whether there is a new one.

        The head is recorded after it is stored: after a crash in between, the log extends the
        recorded head all the same. Raises Unavailable: the log does not extend that head.
        """
        with self._recorded.lock:
            last = self._recorded.read()
            made = self._transactions.write(
                lambda c: make_head(c, site=site, now=now, sign=sign, last=last)
            )
            if made is not None:
                self._recorded.write(made)
        return made is not None

    def logs_to_anchor(self, lines: Sequence[tuple[str, str]]) -> set[str]:
        """Return the logs whose newest anchor does not cover these lines (table, key)."""
        return self._transactions.read(lambda c: not_anchored(c, _leaves(c, lines)))

    def proof(self, lines: Sequence[tuple[str, str]]) -> ProofDocument:
        """Return the proof of lines (table, key) that are anchored. Raises Unavailable."""

        def work(connection: Connection) -> ProofDocument:
            leaves = _leaves(connection, lines)
            if not_anchored(connection, leaves):
                raise Unavailable("The log has just grown.", accepted="Try again in a moment.")
            try:
                return proof_of(connection, leaves)
            except LookupError as error:
                raise Unavailable(
                    f"The log is damaged: {error}.",
                    accepted="An administrator finds out more with: carrel audit verify.",
                ) from error

        return self._transactions.read(work)

    def coursework(self, course: str, assignment: str, person: str) -> list[tuple[str, str]]:
        """Return the lines of a student's submissions, and of the feedback that was released.

        Submissions to the leaderboard are lines once they have a verdict.
        """

        def work(connection: Connection) -> list[tuple[str, str]]:
            of_person = (
                submissions.c.course == course,
                submissions.c.assignment == assignment,
                submissions.c.person == person,
            )
            sent = select(submissions.c.id).where(*of_person).order_by(submissions.c.number)
            ids = connection.scalars(sent).all()
            told = connection.scalars(
                select(feedback.c.submission).where(feedback.c.submission.in_(ids))
            ).all()
            lines = [(submissions.name, str(each)) for each in ids]
            lines += [(feedback.name, str(each)) for each in sorted(told)]
            board = leaderboard_entries.c
            scored = select(board.id).where(
                board.course == course,
                board.assignment == assignment,
                board.person == person,
                board.outcome != "",
            )
            weights = connection.scalars(scored.order_by(board.sent_at, board.id))
            return lines + [(leaderboard_entries.name, each) for each in weights]

        return self._transactions.read(work)

    def ledger_lines(
        self,
        owner: str,
        *,
        group: str = "",
        since: float | None = None,
        until: float | None = None,
        limit: int,
    ) -> list[tuple[str, str]]:
        """Return up to ``limit`` ledger lines of a user that overlap the period, oldest first."""
        query = select(ledger.c.id).where(ledger.c.owner == owner)
        if group:
            query = query.where(ledger.c.group_name == group)
        if since is not None:
            query = query.where(ledger.c.ends_at > since)
        if until is not None:
            query = query.where(ledger.c.starts_at < until)
        query = query.order_by(ledger.c.id).limit(limit)
        found = self._transactions.read(lambda c: c.scalars(query).all())
        return [(ledger.name, str(each)) for each in found]

    def newest_unpublished(self) -> tuple[int, SignedHead] | None:
        """Return the newest head that is not at the place outside, with its size."""
        query = select(log_heads).where(log_heads.c.published_at.is_(None))
        query = query.order_by(log_heads.c.size.desc()).limit(1)
        row = self._transactions.read(lambda c: c.execute(query).first())
        if row is None:
            return None
        return row.size, SignedHead(text=row.text, key=row.key, signature=row.signature)

    def note_publication(self, size: int, *, at: float | None, error: str = "") -> None:
        """Store that a head was published at ``at``, or why it was not."""
        change = update(log_heads).where(log_heads.c.size == size)
        self._transactions.write(
            lambda c: c.execute(change.values(published_at=at, error=error[:500]))
        )

    def state(self) -> LogState:
        return self._transactions.read(_state)

    def replaced_lines(self) -> tuple[ReplacedLine, ...]:
        """Return the lines with a newer line, or a queued row, of the same row, oldest first."""
        newer, columns = log_leaves.alias(), log_leaves.c
        again = exists().where(
            newer.c.source == columns.source,
            newer.c.row_key == columns.row_key,
            newer.c.log == columns.log,
            newer.c.position > columns.position,
        )
        queued = exists().where(
            log_queue.c.source == columns.source, log_queue.c.row_key == columns.row_key
        )
        names = [name for name, source in SOURCES.items() if source.replaced]
        query = select(log_leaves).where(columns.source.in_(names), or_(again, queued))
        query = query.order_by(columns.entered_at, columns.log, columns.position)
        return tuple(
            ReplacedLine(
                log=row.log,
                position=row.position,
                table=row.source,
                row=row.row_key,
                entered_at=row.entered_at,
            )
            for row in self._transactions.read(lambda c: c.execute(query).all())
        )

    def unanchored_since(self) -> float | None:
        """Return when the oldest line that no anchor covers was entered; None without any."""
        covered = select(func.coalesce(func.max(log_anchors.c.size), 0)).where(
            log_anchors.c.log == logs.c.name
        )
        first = log_leaves.c.position == covered.scalar_subquery()
        query = select(func.min(log_leaves.c.entered_at)).join(
            logs, and_(log_leaves.c.log == logs.c.name, first)
        )
        found: float | None = self._transactions.read(lambda c: c.scalar(query))
        return found

    def lines(self) -> int:
        """Return the number of all lines."""
        query = select(func.sum(logs.c.size))
        return self._transactions.read(lambda c: c.scalar(query)) or 0

    def verify(
        self,
        published: Sequence[Head],
        read_head: ReadHead,
        advance: Advance,
        note: Callable[[LogFinding], None],
    ) -> None:
        """Compare everything on one consistent view; ``note`` is called with what differs."""
        last = None
        try:
            # Before the view of the database, which then extends it.
            last = self._recorded.read()
        except Unavailable as error:
            note(LogFinding(problem=error.message))
        else:
            if last is None and self._recorded.path is not None and self.state().head is not None:
                note(
                    LogFinding(
                        problem=f"{self._recorded.path}, which records the head that was signed "
                        "last, is missing. The next head writes it."
                    )
                )

        def work(connection: Connection) -> None:
            for finding in verify_log(connection, published, read_head, advance, last=last):
                note(finding)

        self._transactions.read(work)


def _leaves(connection: Connection, lines: Sequence[tuple[str, str]]) -> list[Leaf]:
    keys: dict[str, list[str]] = {}
    for source, key in lines:
        keys.setdefault(source, []).append(key)
    found = [leaf for name, wanted in keys.items() for leaf in leaves_of(connection, name, wanted)]
    if not found:
        raise NotFound("There is nothing to prove: no such line is in the log.")
    if len(found) < len(lines):
        missing = len(lines) - len(found)
        raise Unavailable(
            f"{missing} of the lines are not in the log yet.", accepted="Try again in a minute."
        )
    return found


def _queued(connection: Connection) -> bool:
    return connection.scalar(select(log_queue.c.id).limit(1)) is not None


def _state(connection: Connection) -> LogState:
    head = connection.execute(select(log_heads).order_by(log_heads.c.size.desc()).limit(1)).first()
    waiting = connection.execute(
        select(func.count(), func.min(log_heads.c.at)).where(log_heads.c.published_at.is_(None))
    ).one()
    failed = select(log_heads.c.error).where(
        log_heads.c.published_at.is_(None), log_heads.c.error != ""
    )
    found = connection.execute(select(logs).order_by(logs.c.name))
    return LogState(
        sizes={row.name: row.size for row in found},
        queued=connection.scalar(select(func.count()).select_from(log_queue)) or 0,
        anchors=connection.scalar(select(func.count()).select_from(log_anchors)) or 0,
        unpublished=waiting[0],
        unpublished_since=waiting[1],
        error=connection.scalar(failed.order_by(log_heads.c.size).limit(1)) or "",
        head=None
        if head is None
        else SignedHead(text=head.text, key=head.key, signature=head.signature),
        signed_at=None if head is None else head.at,
        published_at=connection.scalar(select(func.max(log_heads.c.published_at))),
    )
