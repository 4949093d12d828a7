"""The values about Check that travel: what a student asks, what came out, and the order for it."""

from __future__ import annotations

from .base import Out
from .courses import ContentOut
from .grading import GradingOrderOut

RESULT = "check.json"
"""What came out, in the attempt's own folder, which nobody but the service reads."""
UNSEEN = "not shown"
"""The word for a test of which students see nothing; the others are those of grading."""


class CheckedCellOut(Out):
    """One graded cell of a notebook: how its visible tests went, in a word and a sentence."""

    notebook: str
    cell: str
    word: str
    sentence: str


class CheckOut(Out):
    """A check of one's own work: ``request`` is its request on the pool.

    ``sha256`` is over the files that were checked, as in a receipt. ``sentence`` says how it
    stands or what came out; ``passed`` is null until it has come to its end.
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
    """The newest one first; they are kept for a day."""

    checks: list[CheckOut]


class CheckOrderOut(Out):
    """What the checker of an attempt has to do; it lies with the request, and never travels far."""

    order: GradingOrderOut
    person: str
    files: list[ContentOut]
