"""Verify the log of an installation: ``carrel audit verify``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import select

from ..config.settings import Settings
from ..config.signing_key import site_signing_key
from ..config.state_folder import StateFolder
from ..errors import InvalidInput
from ..proofs.verification import Head, UnprovenLine
from ..records.audit import AuditAction, AuditEntry
from ..store import SqlStore, open_store
from ..store.sql.merkle_log.verification import LogFinding
from ..store.sql.tables.merkle_log import log_heads
from .log_store import SqlLogStore
from .service import TransparencyLog, published_heads

MOST_FINDINGS: Final = 1000
"""Findings that are kept; all are counted."""
TARGET: Final = "log"
"""Target of the entries of verifications in the audit log."""


@dataclass(slots=True, kw_only=True)
class LogReport:
    """Attributes:
    lines: that were compared.
    heads: published heads that were compared.
    count: how many findings there are, of which the first are in ``findings``.
    """

    lines: int
    heads: int
    count: int
    findings: list[LogFinding]


def check_log(
    state: StateFolder,
    *,
    heads_file: Path | None,
    who: str,
    started: Callable[[int], Callable[[int], None]],
) -> LogReport:
    """Compare the database of an installation with its log, and record that in the audit log.

    Args:
        heads_file: published heads; by default the file of the settings, if there is one.
        started: called with the number of lines; returns what is called with each advance.

    Raises:
        InvalidInput: the file of heads is missing, or cannot be read.
    """
    settings = Settings.load(state)
    key = site_signing_key(state)
    with closing(open_store(state.database)) as store:
        log = TransparencyLog(
            SqlLogStore(store.transactions), key, settings.public_service_url, time.time
        )
        report = LogReport(lines=log.store.lines(), heads=0, count=0, findings=[])

        def note(finding: LogFinding) -> None:
            report.count += 1
            if len(report.findings) < MOST_FINDINGS:
                report.findings.append(finding)

        heads = _published(log, heads_file, settings, _published_sizes(store), note)
        report.heads = len(heads)
        log.store.verify(heads, log.read_head, started(report.lines), note)
        facts = {"lines": report.lines, "published heads": report.heads, "findings": report.count}
        entry = AuditEntry(
            at=time.time(), who=who, action=AuditAction.LOG_VERIFY, target=TARGET, after=facts
        )
        store.add_change(entry)
    return report


def _published_sizes(store: SqlStore) -> Sequence[int]:
    """Return the sizes of the heads that were published, by the database.

    It is read before the file of heads: the service may publish another one in between.
    """
    query = select(log_heads.c.size).where(log_heads.c.published_at.is_not(None))
    return store.transactions.read(lambda c: c.scalars(query).all())


def _published(
    log: TransparencyLog,
    chosen: Path | None,
    settings: Settings,
    sizes: Sequence[int],
    note: Callable[[LogFinding], None],
) -> tuple[Head, ...]:
    path = chosen or (Path(settings.log_heads_file) if settings.log_heads_file else None)
    if path is None:
        return ()
    expected = () if chosen else sizes
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        what = "The published heads" if chosen else "The published heads, log_heads_file,"
        raise InvalidInput(
            f"{what} cannot be read: {path}: {error.strerror}.",
            accepted="The file that the service writes, or a copy: --heads FILE.",
        ) from error

    def unread(error: UnprovenLine) -> None:
        note(LogFinding(problem=f"The published heads in {path}: {error}"))

    heads = published_heads(text, log, unread)
    for size in sorted({*expected} - {head.size for head in heads}):
        note(
            LogFinding(
                problem=f"The head of size {size} was published, but {path} does not contain it: "
                "its line was removed or changed, or the file is another one than before.",
                table="log_heads",
                row=str(size),
            )
        )
    return heads
