"""The log of the service: text lines or one JSON object per line, with the id of the HTTP call.

Every HTTP call has an id. Each record that is logged while the call is handled carries it, also in
threads. Tokens, queries and bodies are never logged.
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
"""The id of the HTTP call that is being handled; empty outside of calls."""
VARIABLE = "CARREL_LOG"
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FIELDS = "carrel_fields"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def chosen_format(setting: str) -> LogFormat:
    """Return the format from the environment, else from the settings. Raises InvalidInput."""
    name = os.environ.get(VARIABLE) or setting
    try:
        return LogFormat(name)
    except ValueError:
        raise InvalidInput(
            f"Unknown log format: {name[:40]!r}.",
            accepted=f"Set {VARIABLE}, or 'log' in settings.json, to one of: "
            f"{', '.join(LogFormat)}.",
        ) from None


def configure(chosen: LogFormat, stream: TextIO | None = None) -> None:
    """Configure the log format of this process."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if chosen is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def request_id(given: str) -> str:
    """Return the id that the caller sent if it is well-formed, else a new one."""
    return given if _WELL_FORMED.fullmatch(given) else f"r-{secrets.token_hex(8)}"


def fields(**values: str | float) -> dict[str, dict[str, str | float]]:
    """Return the argument ``extra`` of a log call that adds these fields to the JSON line."""
    return {_FIELDS: values}


class TextLines(logging.Formatter):
    """``2026-11-21 14:05:07,123 INFO    carrel: …``, with the id of the call at the end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        call_id = REQUEST_ID.get()
        return f"{line} [{call_id}]" if call_id else line


class JsonLines(logging.Formatter):
    """One JSON object per line.

    Always ``at``, ``level``, ``logger`` and ``message``; ``request_id``, ``traceback`` and the
    ``fields`` of the call where there are any.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if call_id := REQUEST_ID.get():
            line["request_id"] = call_id
        line.update(getattr(record, _FIELDS, {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
