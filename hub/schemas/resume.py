"""Bodies to halt a job, and to resume it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .base import In, Out
from .requests import RequestOut


class HaltIn(In):
    """Halts a job; its owner sees the reason."""

    reason: Annotated[str, Field(max_length=500)] = ""


class ResumeIn(In):
    """How to go on with an ended job; what is omitted is as before."""

    from_cell: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Number of the first code cell to execute; omit it for the one after the last saved cell."""
    notebook: str | None = None
    """The content of an edited notebook."""
    seconds: int | None = None
    memory_bytes: int | None = None
    devices: int | None = None
    idempotency_key: Annotated[str, Field(max_length=200)] = ""
    dry_run: bool = False
    """Only return what would happen."""


class ChangedCellOut(Out):
    """A code cell before the first one to execute that differs from the one that was executed."""

    number: int
    diff: str


class ResumeOut(Out):
    """How a job goes on."""

    request: RequestOut | None
    """The new job; null for a dry run."""
    resumes: str
    start: int
    """Number of the first code cell that is executed."""
    cells: int
    """Number of code cells; 0 for a command."""
    changed: list[ChangedCellOut] = []
    """Cells that were changed and are not executed again if `from_cell` was given."""
    left_out: dict[str, str] = {}
    """The variables that could not be saved, each with the reason."""
