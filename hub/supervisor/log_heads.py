"""The checks of ``carrel doctor`` that the log grows, and that its heads are published outside."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..messages import units
from ..records.diagnostics import Finding, Severity

_SUBJECT: Final = "log heads"
_GROWTH: Final = "log growth"
_FAILED: Final = (
    "SELECT count(*), max(error) FROM log_heads WHERE published_at IS NULL AND error <> ''"
)


_LONGEST_QUEUED: Final = 600.0
"""Seconds in the queue from which on a line is late; the service enters lines every 5 s."""
_OLDEST_QUEUED: Final = "SELECT count(*), min(queued_at) FROM log_queue"
_OLDEST_UNANCHORED: Final = """
    SELECT min(entered_at) FROM logs JOIN log_leaves ON log = name AND position =
        (SELECT coalesce(max(log_anchors.size), 0) FROM log_anchors WHERE log_anchors.log = name)
"""
_HEAD_OF_SIZE: Final = "SELECT text FROM log_heads WHERE size = ?"


def findings(state: StateFolder, settings: Settings, *, now: float) -> Iterator[Finding]:
    """Read the database without changing it; its schema may be older than this version."""
    yield _publication(state, settings)
    try:
        with closing(sqlite3.connect(f"file:{state.database}?mode=ro", uri=True)) as database:
            problems = tuple(_late(database, settings, now)) + tuple(_recorded(state, database))
    except (sqlite3.Error, TypeError) as problem:
        yield Finding(
            subject=_GROWTH,
            verdict=Severity.UNKNOWN,
            what=f"The growth of the log cannot be checked: {problem}.",
            mend="Start this version once; it upgrades the database.",
        )
        return
    for what in problems:
        yield Finding(
            subject=_GROWTH,
            verdict=Severity.WARNING,
            what=what,
            mend="If the site is running, find out more with: carrel audit verify.",
        )
    if not problems:
        what = "New lines are in the log, and it extends the head that was signed last."
        yield Finding(subject=_GROWTH, verdict=Severity.FINE, what=what)


def _late(database: sqlite3.Connection, settings: Settings, now: float) -> Iterator[str]:
    queued, since = database.execute(_OLDEST_QUEUED).fetchone()
    if queued and now - since > _LONGEST_QUEUED:
        yield f"{queued} lines wait for the log, the oldest for {units.duration(now - since)}."
    (entered,) = database.execute(_OLDEST_UNANCHORED).fetchone()
    if entered is not None and now - entered > 2 * settings.log_head_seconds:
        ago = units.duration(now - entered)
        yield f"A line that entered the log {ago} ago is not anchored yet."


def _recorded(state: StateFolder, database: sqlite3.Connection) -> Iterator[str]:
    """Compare the recorded head with the stored one of its size."""
    try:
        recorded = json.loads(state.log_head.read_text(encoding="utf-8"))
        row = database.execute(_HEAD_OF_SIZE, (recorded["size"],)).fetchone()
        if row is None or json.loads(row[0])["root"] != recorded["root"]:
            yield (
                f"The log does not extend the head of size {recorded['size']} that was signed "
                "last. No head is signed."
            )
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        yield f"{state.log_head} cannot be read. No head is signed."


def _publication(state: StateFolder, settings: Settings) -> Finding:
    if not settings.log_heads_file and not settings.log_heads_command:
        return Finding(
            subject=_SUBJECT,
            verdict=Severity.NOTE,
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
