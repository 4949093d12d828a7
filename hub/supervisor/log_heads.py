"""The check of ``carrel doctor`` that heads of the log are published outside."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final

from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..records.diagnostics import Finding, Severity

_SUBJECT: Final = "log heads"
_FAILED: Final = (
    "SELECT count(*), max(error) FROM log_heads WHERE published_at IS NULL AND error <> ''"
)


def finding(state: StateFolder, settings: Settings) -> Finding:
    """Read the database without changing it; its schema may be older than this version."""
    if not settings.log_heads_file and not settings.log_heads_command:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.WARNING,
            what="Heads of the log are not published: an editor of the database who has the key "
            "of the site can rewrite the log unnoticed.",
            mend="Set log_heads_file or log_heads_command in settings.json.",
        )
    try:
        with closing(sqlite3.connect(f"file:{state.database}?mode=ro", uri=True)) as database:
            count, error = database.execute(_FAILED).fetchone()
    except sqlite3.Error as problem:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.UNKNOWN,
            what=f"The publication of heads cannot be checked: {problem}.",
            mend="Start this version once; it upgrades the database.",
        )
    if count:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.WARNING,
            what=f"Heads of the log could not be published. {error}",
            mend="Correct log_heads_file or log_heads_command; they are published later.",
        )
    return Finding(subject=_SUBJECT, verdict=Severity.FINE, what="Heads of the log are published.")
