"""A finding of ``carrel doctor`` and how severe it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    FINE = "fine"
    WARNING = "warning"
    """It works, with less than it could have, or less safely."""
    MISSING = "missing"
    """Carrel does not work, or not safely, until it is mended."""
    UNKNOWN = "unknown"
    """It could not be found out, and the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What ``carrel doctor`` found about one thing.

    Attributes:
        what: a sentence.
        mend: how to mend it; empty where nothing is to be mended.
    """

    subject: str
    verdict: Severity
    what: str
    mend: str = ""
