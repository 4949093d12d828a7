"""nbgrader's formgrader in a teacher's session, with the gradebook of Carrel's grading."""

from __future__ import annotations

import pytest

from .browser import Person
from .formgrader import give_points_and_check_that_they_count, graded, teacher
from .support import Installation

pytestmark = [pytest.mark.browser, pytest.mark.slow]

__all__ = ["graded", "teacher"]


def test_points_given_by_a_person_count(graded: Installation, teacher: Person) -> None:
    give_points_and_check_that_they_count(graded, teacher)
