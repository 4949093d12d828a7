"""The form of a late rule: steps of a time and a deduction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ....courses.deadlines import rules as due
from ...errors import InvalidInput

_SHOWN = 3
"""Rows of an empty form."""
_LENGTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRow:
    """One step as entered: up to a time after the due date, deduct a percentage.

    Attributes:
        unit: ``m``, ``h`` or ``d``.
    """

    span: str = ""
    unit: str = "h"
    part: str = ""

    def text(self, number: int) -> str:
        """Return the step as the command line accepts it. Raises InvalidInput."""
        part = self.part.replace(",", ".")
        if not re.fullmatch("[0-9]+", self.span) or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", part):
            raise InvalidInput(
                f"Step {number} of the late rule has the time {self.span!r} and the deduction "
                f"{self.part!r}.",
                accepted="Enter two numbers, such as 24 hours and 10 %, or leave both empty.",
                field="late",
            )
        return f"{self.span}{self.unit}:-{part}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class LateForm:
    """The steps that are not empty."""

    rows: tuple[LateRow, ...] = ()

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> Self:
        def entry(number: int, name: str) -> str:
            return fields.get(f"late_{name}_{number}", "").strip()[:_LENGTH]

        rows = [
            LateRow(span=entry(number, "span"), unit=unit, part=entry(number, "part"))
            for number in range(1, due.MOST_STEPS + 1)
            if (unit := entry(number, "unit")) in due.UNITS
        ]
        return cls(rows=tuple(row for row in rows if row.span or row.part))

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the form of a stored rule."""
        steps = (step.partition(":-") for step in text.split(",") if text != "none")
        rows = (
            LateRow(span=span[:-1], unit=span[-1], part=part.removesuffix("%"))
            for span, _, part in steps
        )
        return cls(rows=tuple(rows))

    @property
    def shown(self) -> tuple[LateRow, ...]:
        """The steps, and empty rows for more."""
        missing = max(_SHOWN - len(self.rows), min(1, due.MOST_STEPS - len(self.rows)))
        return (*self.rows, *(LateRow() for _ in range(missing)))

    def text(self) -> str:
        """Return the rule as the command line accepts it.

        Raises:
            InvalidInput: a step is incomplete, not longer than the one before it, or deducts less.
        """
        text = ",".join(row.text(number) for number, row in enumerate(self.rows, 1)) or "none"
        try:
            due.read_late(text)
        except InvalidInput:
            raise InvalidInput(
                "The steps of the late rule do not follow each other.",
                accepted="Each step is longer than the one before it, deducts at least as much, "
                "and at most 100 %.",
                field="late",
            ) from None
        return text
