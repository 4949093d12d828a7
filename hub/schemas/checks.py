"""Bodies about checks of a student's own work: request, result, and input of the checker."""

from __future__ import annotations

from .base import Out
from .courses import ContentOut
from .grading import GradingOrderOut

RESULT = "check.json"
"""The result file in the folder of the attempt, which only the service reads."""
UNSEEN = "not shown"
"""The result of a hidden test; the other words are those of grading."""


class CheckedCellOut(Out):
    """The visible tests of one graded cell: result and explanation."""

    notebook: str
    cell: str
    word: str
    sentence: str


class CheckOut(Out):
    """A check of one's own work: ``request`` is its request on the pool.

    ``sha256`` is over the checked files, as in a receipt. ``sentence`` is the state or the result;
    ``passed`` is null until the check has ended.
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
    """Newest first; they are kept for a day."""

    checks: list[CheckOut]


class CheckOrderOut(Out):
    """Input of the checker of an attempt, stored with the request."""

    order: GradingOrderOut
    person: str
    files: list[ContentOut]
