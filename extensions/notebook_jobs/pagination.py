"""Filters, order and pages of the lists of jobs and job definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from jupyter_scheduler.models import (
    DescribeJob,
    DescribeJobDefinition,
    ListJobsQuery,
    SortDirection,
    SortField,
)

MOST_LISTED: Final = 1000
"""The list has the newest jobs, as many as jupyter-scheduler's own pages have."""
_Described = TypeVar("_Described", DescribeJob, DescribeJobDefinition)


def matches(job: DescribeJob, query: ListJobsQuery) -> bool:
    """Return whether a job is in the list that a query asks for."""
    return (
        query.status in {None, job.status}
        and (not query.start_time or (job.start_time or 0) >= query.start_time)
        and named_and_tagged(job, query.name, query.tags)
    )


def named_and_tagged(
    described: DescribeJob | DescribeJobDefinition, name: str | None, tags: Sequence[str] | None
) -> bool:
    """Return whether the name begins so and all the tags are there."""
    return described.name.startswith(name or "") and set(tags or ()) <= set(described.tags)


def page_of(
    found: list[_Described], sort_by: Sequence[SortField], most: int | None, token: str | None
) -> tuple[list[_Described], str | None]:
    """Return the page after the token, sorted, and the token of the next page."""
    for field in reversed(sort_by):
        key, descending = field.name, field.direction is SortDirection.desc
        found = sorted(found, key=lambda each: _sort_key(each, key), reverse=descending)
    begin = int(token) if token and token.isdecimal() else 0
    end = begin + (MOST_LISTED if most is None else most)
    return found[begin:end], str(end) if end < len(found) else None


def _sort_key(described: DescribeJob | DescribeJobDefinition, name: str) -> tuple[bool, str | int]:
    value = getattr(described, name, None)
    return value is not None, value if isinstance(value, int) else str(value or "").lower()
