"""What a ``Job`` and a list of them say of themselves, in a terminal and in a notebook."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..hub.messages import requests as request_messages
from ..hub.messages import units
from ..hub.schemas import RequestOut


def what(request: RequestOut) -> str:
    return request_messages.work_title(
        request.kind, request.notebook, request.command, request.labels
    )


def told(request: RequestOut) -> str:
    """State, progress and reason in a few words."""
    text = request_messages.state_name(request.state)
    if request.progress and request.progress.cells and not request.ended:
        text += f", {request.progress.done} of {units.count(request.progress.cells, 'cell')}"
    if request.cause:
        return f"{text}. {request.cause.message}"
    return f"{text}. {request.wait.sentence}" if request.wait else text


def row(request: RequestOut) -> list[str]:
    """Of a list of jobs."""
    labels = ", ".join(f"{key}={value}" for key, value in request.labels.items())
    return [request.id, told(request), what(request), labels]


def facts(request: RequestOut) -> Iterator[tuple[str, str]]:
    yield "Job", request.id
    yield "State", told(request)
    yield "Runs", what(request)
    yield "Parameters", ", ".join(f"{key} = {value!r}" for key, value in request.parameters.items())
    yield "Devices", units.devices(request.devices, request.model)
    yield "Group", request.group
    yield "Labels", ", ".join(f"{key}={value}" for key, value in request.labels.items())
    if request.started_at is not None:
        until = request.ended_at or time.time()
        yield "Ran", units.duration(until - request.started_at)
