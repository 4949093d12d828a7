"""What a verification of the log lists without calling it a finding."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from ..config.settings import Settings
from ..config.state_folder import StateFolder
from ..store import open_store
from .log_store import ReplacedLine, SqlLogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRemarks:
    """Attributes:
    replaced: lines whose row was written again later. The log cannot tell whether that was a
        release of feedback or a change in the database: only the persons can.
    unanchored_since: when the oldest line without an anchor was entered, if that is more than
        two times ``log_head_seconds`` ago, as while the service is stopped; else None.
    """

    replaced: tuple[ReplacedLine, ...]
    unanchored_since: float | None


def log_remarks(state: StateFolder, *, now: float) -> LogRemarks:
    """Read the remarks on the log of an installation."""
    latest = now - 2 * Settings.load(state).log_head_seconds
    with closing(open_store(state.database)) as store:
        log = SqlLogStore(store.transactions)
        since = log.unanchored_since()
        return LogRemarks(
            replaced=log.replaced_lines(),
            unanchored_since=since if since is not None and since < latest else None,
        )
