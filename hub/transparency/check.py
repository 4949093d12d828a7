"""Verify the log of an installation: ``carrel audit verify``."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..config.settings import Settings
from ..config.signing_key import site_signing_key
from ..config.state_folder import StateFolder
from ..errors import InvalidInput
from ..proofs.verification import Head, UnprovenLine
from ..records.audit import AuditAction, AuditEntry
from ..store import open_store
from ..store.sql.merkle_log.verification import LogFinding
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
        InvalidInput: the file of heads cannot be read.
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

        heads = _published(log, heads_file, settings, note)
        report.heads = len(heads)
        log.store.verify(heads, log.read_head, started(report.lines), note)
        facts = {"lines": report.lines, "published heads": report.heads, "findings": report.count}
        entry = AuditEntry(
            at=time.time(), who=who, action=AuditAction.LOG_VERIFY, target=TARGET, after=facts
        )
        store.add_change(entry)
    return report


def _published(
    log: TransparencyLog,
    chosen: Path | None,
    settings: Settings,
    note: Callable[[LogFinding], None],
) -> tuple[Head, ...]:
    path = chosen or (Path(settings.log_heads_file) if settings.log_heads_file else None)
    if path is None or (chosen is None and not path.exists()):
        return ()
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return published_heads(text, log)
    except UnprovenLine as error:
        note(LogFinding(problem=f"The published heads in {path}: {error}"))
        return ()
