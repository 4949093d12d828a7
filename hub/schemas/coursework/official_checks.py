"""Bodies of official checks: students run the hidden tests, and get a verdict and points."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import In, Out
from ..courses import ContentOut
from ..grading import GradingOrderOut

OFFICIAL_RESULT = "official.json"
"""The result file in the attempt folder; only the service reads it."""
MOST_PER_DAY = 50


class OfficialCheckRuleIn(In):
    """Body of ``PUT …/official-checks/rule``: what students may do on one day.

    ``names_cells`` lets the verdict name the tests that passed and those that did not.
    """

    per_day: Annotated[int, Field(ge=1, le=MOST_PER_DAY)]
    names_cells: bool = False


class OfficialCheckRuleOut(Out):
    """The rule of an assignment; ``per_day`` is 0 where official checks are not allowed."""

    assignment: str
    per_day: int
    names_cells: bool


class OfficialCellOut(Out):
    """Whether one test passed; only where the teacher allows its name."""

    notebook: str
    cell: str
    passed: bool


class OfficialCheckOut(Out):
    """One official check: a verdict and points, never a test or what it printed.

    ``outcome`` is empty until the result is shown, then ``passed``, ``not passed``, ``timed out``
    or ``fault``, which costs no run. ``receipt`` is the signed text about what was checked.
    """

    id: str
    course: str
    assignment: str
    version: int
    person: str
    sha256: str
    asked_at: float
    shown_at: float | None = None
    outcome: str
    ended: bool
    sentence: str
    points: float | None = None
    max_points: float | None = None
    cells: list[OfficialCellOut] = []
    receipt: str = ""


class OfficialChecksOut(Out):
    """The caller's official checks of an assignment, newest first.

    ``per_day`` is 0 where they are not allowed. ``left`` are the runs left today, ``next_at`` is
    when the next day begins in ``zone``.
    """

    per_day: int
    names_cells: bool
    left: int
    next_at: float
    zone: str
    checks: list[OfficialCheckOut]


class OfficialCheckLogOut(Out):
    """All official checks of an assignment, newest first."""

    rule: OfficialCheckRuleOut
    checks: list[OfficialCheckOut]


class OfficialOrderOut(Out):
    """The input of the checker, stored with the request."""

    order: GradingOrderOut
    files: list[ContentOut]


class OfficialVerdictOut(Out):
    """The result file of the checker: points of the tests, by notebook and cell."""

    passed: bool
    points: float
    max_points: float
    cells: list[OfficialCellOut]
