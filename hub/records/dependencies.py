"""On which other jobs the start of a job depends, and which values of theirs are its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from ..errors import InvalidInput
from .json_value import Json

PIPELINE, PIPELINE_NAME = "pipeline", "pipeline-job"
"""Labels of the jobs of a pipeline file: the same value for all, and the name in the file."""
ACCEPTED_RESULT: Final = (
    "JOB.report.NAME, the last value that the job has reported as NAME (for a sweep, that of its "
    "best trial); JOB.best.NAME, a parameter of the best trial of a sweep; JOB.trial, the number "
    "of that trial; or JOB.id."
)


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


class ResultKind(StrEnum):
    """What of a job a reference names."""

    REPORT = "report"
    """The last value that it has reported under a name; for a sweep, that of its best trial."""
    BEST = "best"
    """A parameter of the best trial of a sweep."""
    TRIAL = "trial"
    """The number of the best trial of a sweep."""
    ID = "id"
    """The id of the job, by which its output is fetched."""


_NAMED: Final = (ResultKind.REPORT, ResultKind.BEST)


@dataclass(frozen=True, slots=True)
class ResultReference:
    """A value of a job; ``str`` of it is the text that ``parse`` reads."""

    job: str
    kind: ResultKind
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``JOB.report.NAME``, ``JOB.best.NAME``, ``JOB.trial`` or ``JOB.id``.

        Raises:
            InvalidInput: it is none of these.
        """
        job, _, value = text.strip().partition(".")
        return cls.of(job, value)

    @classmethod
    def of(cls, job: str, value: str) -> Self:
        """Return the value of a job, as in ``parse``. Raises InvalidInput."""
        kind, dot, name = value.partition(".")
        named = kind in _NAMED
        if not job or kind not in tuple(ResultKind) or named != bool(name) or bool(dot) != named:
            raise InvalidInput(
                f"{job + '.' + value!r:.120} names no value of a job.",
                accepted=ACCEPTED_RESULT,
                field="results",
            )
        return cls(job, ResultKind(kind), name)

    @property
    def value(self) -> str:
        """The text after the job: ``best.lr``."""
        return f"{self.kind}.{self.name}" if self.name else str(self.kind)

    def __str__(self) -> str:
        return f"{self.job}.{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultParameter:
    """A parameter whose value an earlier job gives.

    Attributes:
        name: the parameter.
        job, value: of a ``ResultReference``.
        source: the job that gave the value, which is ``job`` or one that resumes it; empty until
            then.
    """

    name: str
    job: str
    value: str
    source: str = ""

    @property
    def reference(self) -> ResultReference:
        return ResultReference.of(self.job, self.value)

    def as_json(self) -> Mapping[str, Json]:
        return {"name": self.name, "job": self.job, "value": self.value, "source": self.source}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundResult:
    """The value of a reference, and the job that gave it."""

    value: Json
    source: str
