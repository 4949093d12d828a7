"""kill -9 of the service, again and again, among bursts of jobs: each is executed exactly once."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from carrel.hub.scheduling.model.states import State

from ..e2e.support import Installation, eventually
from .audit import audit, read
from .support import (
    BEGAN,
    FINISHED,
    STUDENTS,
    all_ended,
    executions,
    healthy,
    insist,
    job_body,
    nothing_left,
)


@pytest.mark.parametrize(
    ("seed", "kills", "jobs"),
    [
        pytest.param(1, 3, 6, id="3 kills"),
        pytest.param(2, 40, 70, id="40 kills", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_cases_1_2_3_10_every_job_of_a_burst_is_executed_once(
    patient: Installation, seed: int, kills: int, jobs: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # to be repeated, not to be secret
    for student in STUDENTS:
        patient.token(student)
    keys: list[str] = []
    for number in range(kills):
        for _ in range(jobs * (number + 1) // kills - len(keys)):
            keys.append(f"burst-{len(keys)}")
            insist(patient, STUDENTS[len(keys) % len(STUDENTS)], _quick(keys[-1]))
        _wait_for_a_moment(patient, chance)
        patient.kill("service")
    healthy(patient)

    books = eventually(lambda: all_ended(patient), "every job ends", within=180)
    assert len(books.requests) == len(keys) == jobs
    assert {request.state for request in books.requests} == {State.SUCCEEDED}
    last = {request.id: [f"{request.id}.{request.epoch}"] for request in books.requests}
    assert executions(patient, "began") == last
    assert executions(patient, "finished") == last
    for request in books.requests:
        # An attempt before the last one never ran: it went back to the queue.
        assert request.path.count(State.RUNNING) == 1
        assert request.path.count(State.QUEUED) == request.epoch
    nothing_left(patient)

    # 3: a service that comes back to nothing but finished requests admits none of them.
    patient.kill("service")
    healthy(patient)
    insist(patient, "student1", _quick("afterwards"))
    eventually(lambda: all_ended(patient), "the later job ends", within=90)
    assert audit(patient.state).requests[:-1] == books.requests


def _quick(key: str) -> dict[str, Any]:
    return job_body(BEGAN, FINISHED, devices=1, idempotency_key=key)


def _wait_for_a_moment(site: Installation, chance: random.Random) -> None:
    """Between the lease and the start, after the start, while it runs, or any time at all."""
    wanted = chance.choice([State.GRANTED, State.STARTING, State.RUNNING, None])
    if wanted is not None:
        known = sum(request.path.count(wanted) for request in read(site.state).requests)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            paths = [request.path for request in read(site.state).requests]
            if sum(path.count(wanted) for path in paths) > known:
                break
            time.sleep(0.005)
    time.sleep(chance.random() * 0.3)  # the moment is the point, nothing is waited for
