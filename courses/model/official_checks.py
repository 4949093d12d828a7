"""The values of official checks: the rule of an assignment, and the log of its checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ...hub.records.audit import AuditEntry


class CheckOutcome(StrEnum):
    """How an official check ended. A fault of the system costs no run."""

    LIVE = ""
    PASSED = "passed"
    NOT_PASSED = "not passed"
    TIMED_OUT = "timed out"
    FAULT = "fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialCheckRule:
    """That students may run the hidden tests of an assignment.

    Attributes:
        per_day: runs of one student on one day of the assignment's time zone.
        names_cells: whether a verdict names the tests that passed and those that did not.
        by: the teacher who allowed it: the owner of the requests.
    """

    course: str
    assignment: str
    per_day: int
    names_cells: bool
    by: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialCheck:
    """One official check.

    Attributes:
        request: the id of its request on the pool.
        version: the released version whose tests run.
        sha256, tests_sha256: of the checked files, and of the teacher's source.
        image: digest; empty on an engine without images.
        names_cells: as the rule was when it was asked for.
        points, max_points: of all tests; None until it has ended with a verdict.
        cells: notebook, cell and ``passed`` or ``not passed`` of each test.
        receipt: what was checked, and its result, signed, as JSON; empty until it has ended.
    """

    request: str
    course: str
    assignment: str
    person: str
    version: int
    sha256: str
    tests_sha256: str
    image: str
    asked_at: float
    names_cells: bool
    outcome: CheckOutcome = CheckOutcome.LIVE
    ended_at: float | None = None
    points: float | None = None
    max_points: float | None = None
    cells: tuple[tuple[str, str, str], ...] = ()
    receipt: str = ""


class OfficialCheckStore(Protocol):
    """Stores rules and checks. Each method is one transaction; ``change`` goes to the audit log."""

    def rule(self, course: str, assignment: str) -> OfficialCheckRule | None: ...

    def put_rule(self, rule: OfficialCheckRule, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def remove_rule(
        self, course: str, assignment: str, *, change: AuditEntry | None = None
    ) -> None: ...

    def checks(
        self, course: str, assignment: str, person: str | None = None
    ) -> Sequence[OfficialCheck]:
        """The checks of an assignment, newest first."""

    def add(self, check: OfficialCheck) -> None: ...

    def end(self, check: OfficialCheck) -> bool:
        """Store the end of a check; False where it was stored before, which stays."""
