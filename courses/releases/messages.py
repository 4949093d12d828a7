"""Messages to teachers about the check before a release."""

from __future__ import annotations

from collections.abc import Iterator

from ...hub.messages import units
from ...hub.schemas.courses import NotebookTestsOut, ReleaseReportOut


def sentences(report: ReleaseReportOut) -> Iterator[str]:
    """How the check went, and how each notebook is graded. A failed check releases nothing."""
    if not report.tried:
        yield "It was not tried in the grading sandbox before it was released."
        return
    if report.points:
        yield (
            f"Tried in the grading sandbox: the solution gets all {report.points:g} points that "
            "tests give, the released version none."
        )
    yield f"Grading one submission takes about {_seconds(report.seconds)}."
    for each in report.notebooks:
        yield from _notebook(each)


def _notebook(found: NotebookTestsOut) -> Iterator[str]:
    if found.apart:
        yield f"{found.notebook}: apart from the student's kernel run {', '.join(found.apart)}."
    if found.in_kernel:
        yield f"{found.notebook}: in the student's kernel run {', '.join(found.in_kernel)}."
    if found.by_hand:
        yield f"{found.notebook}: a person grades {', '.join(found.by_hand)}."


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else units.duration(seconds)  # noqa: PLR2004
