"""A finding of ``carrel doctor`` and how severe it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    FINE = "fine"
    NOTE = "note"
    """Carrel works as designed; an optional setting would protect it further."""
    WARNING = "warning"
    """Carrel works, but with fewer features or less safely."""
    MISSING = "missing"
    """Carrel does not work, or not safely, until it is fixed."""
    UNKNOWN = "unknown"
    """The check was not possible; the sentence gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check of ``carrel doctor``.

    Attributes:
        what: a sentence.
        mend: how to fix it; empty if nothing is wrong.
    """

    subject: str
    verdict: Severity
    what: str
    mend: str = ""
