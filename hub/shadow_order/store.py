"""Store shadow runs and their decisions; every method is one transaction."""

from __future__ import annotations

from sqlalchemy import Connection, delete, desc, insert, select, update

from ..store.sql.tables.shadow_order import shadow_decisions, shadow_runs
from ..store.sql.transactions import Transactions
from .records import ShadowDecision, ShadowRun

MOST_RUNS = 20
MOST_DECISIONS = 1000
"""Decisions that are kept of a run, the newest ones; the run counts all."""

_run, _decision = shadow_runs.c, shadow_decisions.c
_COLUMNS = (
    *(_run.number, _run.name, _run.since, _run.until),
    *(_run.compared, _run.differing, _run.problem),
)


class ShadowStore:
    """Shadow runs, of which at most one goes on."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def begin(self, name: str, *, now: float) -> None:
        """Begin a run of this learned order, and end the one that goes on."""

        def work(connection: Connection) -> None:
            _end(connection, now)
            run = {"name": name, "since": now, "compared": 0, "differing": 0, "problem": ""}
            connection.execute(insert(shadow_runs).values(**run))
            newest = select(_run.number).order_by(desc(_run.number)).limit(MOST_RUNS)
            kept = connection.scalars(newest).all()
            connection.execute(delete(shadow_decisions).where(_decision.run.not_in(kept)))
            connection.execute(delete(shadow_runs).where(_run.number.not_in(kept)))

        self._write(work)

    def end(self, *, now: float) -> bool:
        """End the run that goes on; return whether there was one."""
        return self._write(lambda c: _end(c, now))

    def current(self) -> ShadowRun | None:
        """Return the run that goes on; None without one."""
        going_on = select(*_COLUMNS).where(_run.until.is_(None))
        rows = self._read(lambda c: c.execute(going_on).mappings().all())
        return ShadowRun(**rows[0]) if rows else None

    def newest(self) -> ShadowRun | None:
        """Return the newest run; None if there was none."""
        newest = select(*_COLUMNS).order_by(desc(_run.number)).limit(1)
        rows = self._read(lambda c: c.execute(newest).mappings().all())
        return ShadowRun(**rows[0]) if rows else None

    def record(self, run: ShadowRun, found: ShadowDecision | None) -> None:
        """Count a comparison, and keep the difference that it found."""

        def work(connection: Connection) -> None:
            connection.execute(
                update(shadow_runs)
                .where(_run.number == run.number)
                .values(
                    compared=_run.compared + 1,
                    differing=_run.differing + (found is not None),
                    problem="",
                )
            )
            if found is not None:
                _insert(connection, run.number, found)

        self._write(work)

    def record_problem(self, run: ShadowRun, problem: str) -> None:
        """Store why the learned order cannot be used."""
        change = update(shadow_runs).where(_run.number == run.number).values(problem=problem)
        self._write(lambda c: c.execute(change))

    def decisions(self, run: ShadowRun, limit: int) -> tuple[ShadowDecision, ...]:
        """Return decisions of a run, the newest first."""
        which = (
            select(
                *(_decision.at, _decision.queued, _decision.started),
                *(_decision.would_start, _decision.sooner),
            )
            .where(_decision.run == run.number)
            .order_by(desc(_decision.number))
            .limit(limit)
        )
        rows = self._read(lambda c: c.execute(which).all())
        return tuple(
            ShadowDecision(
                at=at,
                queued=queued,
                started=tuple(started),
                would_start=tuple(would_start),
                sooner=sooner,
            )
            for at, queued, started, would_start, sooner in rows
        )


def _end(connection: Connection, now: float) -> bool:
    ended = update(shadow_runs).where(_run.until.is_(None)).values(until=now)
    return connection.execute(ended).rowcount > 0


def _insert(connection: Connection, run: int, found: ShadowDecision) -> None:
    """Insert a decision, and delete those beyond ``MOST_DECISIONS``."""
    connection.execute(
        insert(shadow_decisions).values(
            run=run,
            at=found.at,
            queued=found.queued,
            started=list(found.started),
            would_start=list(found.would_start),
            sooner=found.sooner,
        )
    )
    of_run = select(_decision.number).where(_decision.run == run)
    oldest = of_run.order_by(desc(_decision.number)).offset(MOST_DECISIONS).limit(1)
    last = connection.scalar(oldest)
    if last is not None:
        old = (_decision.run == run) & (_decision.number <= last)
        connection.execute(delete(shadow_decisions).where(old))
