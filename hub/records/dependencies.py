"""On which other jobs the start of a job depends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from ..errors import InvalidInput


class Condition(StrEnum):
    """What has to be true of the other job."""

    OK = "ok"
    """It has succeeded, or a job that resumes it has."""
    ANY = "any"
    """It has ended, however it did."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """One job that another one waits for."""

    job: str
    condition: Condition = Condition.OK

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``JOB``, ``JOB:ok`` or ``JOB:any``. Raises InvalidInput."""
        job, colon, condition = text.strip().partition(":")
        if not job or condition not in ("", *Condition) or (colon and not condition):
            raise InvalidInput(
                f"Invalid dependency: {text[:80]!r}.",
                accepted="JOB or JOB:ok, which starts after it has succeeded, or JOB:any, after it "
                "has ended.",
                field="after",
            )
        return cls(job, Condition(condition or "ok"))

    def __str__(self) -> str:
        return self.job if self.condition is Condition.OK else f"{self.job}:{self.condition}"
