"""The service's log: readable lines, or one JSON object a line, each with the call it belongs to.

Every HTTP call has an id; whatever is logged while it is answered carries it, in threads too.
No token, query or body is ever logged.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

from ..errors import InvalidInput

REQUEST_ID: ContextVar[str] = ContextVar("carrel_request_id", default="")
"""Of the HTTP call that is being answered; empty where there is none."""
VARIABLE = "CARREL_LOG"
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FACTS = "carrel_facts"


class LogForm(StrEnum):
    TEXT = "text"
    JSON = "json"


def chosen_form(setting: str) -> LogForm:
    """Return the format from the environment, else from the settings. Raises InvalidInput."""
    given = os.environ.get(VARIABLE) or setting
    try:
        return LogForm(given)
    except ValueError:
        raise InvalidInput(
            f"There is no form of log {given[:40]!r}.",
            accepted=f"{VARIABLE} or 'log' in settings.json: {', '.join(LogForm)}.",
        ) from None


def configure(form: LogForm, stream: TextIO | None = None) -> None:
    """Configure the log format of this process."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form is LogForm.JSON else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def request_id(given: str) -> str:
    """The caller's own, where it is harmless; else a new one."""
    return given if _WELL_FORMED.fullmatch(given) else f"r-{secrets.token_hex(8)}"


def facts(**named: str | float) -> dict[str, dict[str, str | float]]:
    """``extra`` of a log call: values beside the sentence."""
    return {_FACTS: named}


class TextLines(logging.Formatter):
    """``2026-11-21 14:05:07,123 INFO    carrel: …``, with the id of the call at the end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        call = REQUEST_ID.get()
        return f"{line} [{call}]" if call else line


class JsonLines(logging.Formatter):
    """One object a line: ``at``, ``level``, ``logger``, ``message``, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if call := REQUEST_ID.get():
            line["request_id"] = call
        line.update(getattr(record, _FACTS, {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
