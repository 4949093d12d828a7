"""Describe a ``Job`` and a list of jobs, in a terminal and in a notebook."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..hub.messages import requests, units
from ..hub.schemas import DeviceOut, RequestOut


def device_name(device: DeviceOut) -> str:
    mark = " (simulated)" if device.simulated else ""
    return f"{device.model} #{device.index}{mark}"


def title(request: RequestOut) -> str:
    return requests.work_title(request.kind, request.notebook, request.command, request.labels)


def status_line(request: RequestOut) -> str:
    """Return state, progress and reason in one line."""
    text = requests.state_name(request.state)
    if request.progress and request.progress.cells and not request.ended:
        text += f", {request.progress.done} of {units.count(request.progress.cells, 'cell')}"
    if (left := request.remaining) and left.runs and request.state == "running":
        text += f", about {units.about(left.seconds)} left"
    if request.cause:
        return f"{text}. {request.cause.message}"
    return f"{text}. {request.wait.sentence}" if request.wait else text


def row(request: RequestOut) -> list[str]:
    """Return the columns of a job in a list."""
    labels = ", ".join(f"{key}={value}" for key, value in request.labels.items())
    return [request.id, status_line(request), title(request), labels]


def active_signs(request: RequestOut) -> list[str]:
    """Return what seems to be wrong with a running job, and what may help."""
    if request.ended:
        return []
    return [f"{each.message} {each.suggestion}" for each in request.signs if each.ended_at is None]


def facts(request: RequestOut) -> Iterator[tuple[str, str]]:
    yield "Job", request.id
    yield "State", status_line(request)
    yield "Runs", title(request)
    yield "Parameters", ", ".join(f"{key} = {value!r}" for key, value in request.parameters.items())
    yield "Devices", units.devices(request.devices, request.model)
    yield "Signs", " ".join(active_signs(request))
    yield "Group", request.group
    yield "Labels", ", ".join(f"{key}={value}" for key, value in request.labels.items())
    if request.started_at is not None:
        until = request.ended_at or time.time()
        yield "Ran", units.duration(until - request.started_at)
