"""Path and query parameters of the course routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from ...schemas.base import LARGEST
from ...schemas.names import USER_LENGTH

CourseName = Annotated[str, Path(max_length=64, description="Such as `cs101`.")]


AssignmentName = Annotated[str, Path(max_length=64, description="Such as `ps1`.")]


SubmissionId = Annotated[int, Path(ge=1, le=LARGEST, description="The `id` of a receipt.")]


RegradeId = Annotated[int, Path(ge=1, le=LARGEST, description="The `id` of a regrade request.")]


Version = Annotated[int | None, Query(ge=1, le=LARGEST, description="Default: the newest.")]


Whose = Annotated[
    str,
    Query(max_length=USER_LENGTH, description="For teachers and graders: the work of one student."),
]


Person = Annotated[
    str, Query(max_length=USER_LENGTH, description="The student; alternatively a section.")
]


Section = Annotated[str, Query(max_length=200, description="The section; alternatively a student.")]


DryRun = Annotated[bool, Query(description="Only preview the effect.")]
