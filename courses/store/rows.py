"""Convert between rows of the course tables and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from ..model.records import (
    Assignment,
    CellScore,
    Course,
    CourseRole,
    Extension,
    Feedback,
    Fetched,
    FileRef,
    Folder,
    GradingPace,
    GradingRun,
    LateRule,
    LateStep,
    Member,
    Outage,
    RegradeMessage,
    RegradeRequest,
    ReleasedVersion,
    Submission,
    SubmissionVerdict,
    TrialResult,
)

Found = Row[*tuple[Any, ...]]


def folder(data: dict[str, Any]) -> Folder:
    files = (FileRef(name=name, sha256=sha256, size=size) for name, sha256, size in data["files"])
    return Folder(sha256=data["sha256"], files=tuple(files))


def folder_data(value: Folder) -> dict[str, object]:
    files = [[file.name, file.sha256, file.size] for file in value.files]
    return {"sha256": value.sha256, "files": files}


def course(row: Found) -> Course:
    return Course(**row._mapping)


def member(row: Found) -> Member:
    return Member(**{**row._mapping, "role": CourseRole(row.role)})


def assignment(row: Found) -> Assignment:
    steps: Iterable[tuple[int, float]] = row.late
    late = LateRule(steps=tuple(LateStep(seconds=s, penalty=p) for s, p in steps))
    return Assignment(**{**row._mapping, "late": late})


def assignment_data(value: Assignment) -> dict[str, object]:
    late = [[step.seconds, step.penalty] for step in value.late.steps]
    return asdict(value) | {"late": late}


def released_version(row: Found) -> ReleasedVersion:
    given = {**row._mapping, "files": folder(row.files), "source": folder(row.source)}
    return ReleasedVersion(**given | {"tried": None if row.tried is None else _tried(row.tried)})


def _tried(data: dict[str, Any]) -> TrialResult:
    apart = {name: tuple(ids) for name, ids in data["apart"].items()}
    return TrialResult(
        seconds=data["seconds"], pace=GradingPace(**data.get("pace", {})), apart=apart
    )


def released_version_data(value: ReleasedVersion) -> dict[str, object]:
    folders = {"files": folder_data(value.files), "source": folder_data(value.source)}
    return {"course": value.course, "assignment": value.assignment, "version": value.version} | {
        "released_at": value.released_at,
        "released_by": value.released_by,
        "tried": None if value.tried is None else asdict(value.tried),
        **folders,
    }


def submission(row: Found) -> Submission:
    return Submission(**{**row._mapping, "files": folder(row.files)})


def run(row: Found) -> GradingRun:
    given = {name: value for name, value in row._mapping.items() if name != "id"}
    return GradingRun(**given | {"submissions": tuple(row.submissions)})


def verdict(row: Found) -> SubmissionVerdict:
    cells = tuple(CellScore(**cell) for cell in row.cells)
    return SubmissionVerdict(**{**row._mapping, "cells": cells, "notes": tuple(row.notes)})


def feedback(row: Found) -> Feedback:
    return Feedback(**{**row._mapping, "files": folder(row.files)})


def feedback_data(value: Feedback) -> dict[str, object]:
    files = folder_data(value.files)
    return {"submission": value.submission, "files": files} | {
        "released_at": value.released_at,
        "released_by": value.released_by,
    }


def regrade(row: Found, messages: Iterable[Found]) -> RegradeRequest:
    thread = (RegradeMessage(author=each.author, at=each.at, text=each.text) for each in messages)
    return RegradeRequest(**row._mapping, messages=tuple(thread))


def fetched(row: Found) -> Fetched:
    return Fetched(**row._mapping)


def extension(row: Found) -> Extension:
    return Extension(**{name: value for name, value in row._mapping.items() if name != "id"})


def outage(row: Found) -> Outage:
    return Outage(**{name: value for name, value in row._mapping.items() if name != "id"})
