"""Bodies of checks of a student's own work: result, and input of the checker."""

from __future__ import annotations

from .base import Out
from .courses import ContentOut
from .grading import GradingOrderOut

RESULT = "check.json"
"""The result file in the attempt folder; only the service reads it."""
UNSEEN = "not shown"
"""The result of a hidden test; the other results are those of grading."""


class CheckedCellOut(Out):
    """The visible tests of one graded cell: result and explanation."""

    notebook: str
    cell: str
    word: str
    sentence: str


class CheckOut(Out):
    """A check of a student's own work; ``request`` is the id of the job that runs it.

    ``sha256`` is the hash of the checked files, as in a receipt. ``sentence`` describes the state
    or the result; ``passed`` is null until the check has ended.
    """

    request: str
    course: str
    assignment: str
    state: str
    ended: bool
    asked_at: float
    sha256: str
    sentence: str
    passed: bool | None = None
    cells: list[CheckedCellOut] = []
    notes: list[str] = []


class ChecksOut(Out):
    """Checks of the last day, newest first."""

    checks: list[CheckOut]


class CheckOrderOut(Out):
    """The input of the checker, stored with the request."""

    order: GradingOrderOut
    person: str
    files: list[ContentOut]
