"""Jobs in containers while their engine is slow, or down, or killed with -9 as the service is.

An engine that is killed leaves its containers running (live-restore), so that nothing may be
lost: each job is executed once, whatever was killed while it was created, started or at work.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain

import pytest

from carrel.hub.scheduling.model.states import State

from ..docker_engine import DockerEngine, second_engine, site_file
from ..e2e.support import Installation, eventually
from .audit import Books, audit, read
from .stress import each_ran_alone, every_second_is_charged, kill, work
from .support import (
    BEGAN,
    FINISHED,
    STUDENTS,
    all_ended,
    campaign,
    drawn,
    executions,
    free,
    healthy,
    insist,
    patient_installation,
    submit,
)

pytestmark = pytest.mark.docker

PARTS = ("service", "engine")


@pytest.fixture(scope="module")
def engine(docker_engine: DockerEngine, base_image: str) -> Iterator[DockerEngine]:
    """One that may be killed: other tests, and other people, may need the one that was found."""
    if docker_engine.alone:
        yield docker_engine
        return
    with second_engine(docker_engine, base_image) as own:
        yield own


@pytest.fixture(scope="module")
def site(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    state = tmp_path_factory.mktemp("containers") / "state"
    site_file(state, engine)
    with patient_installation(state, "--engine", "docker") as made:
        yield made


def test_a_slow_or_stopped_engine_fails_no_job_and_delays_no_other(
    site: Installation, engine: DockerEngine
) -> None:
    student = STUDENTS[0]
    site.token(student)
    before = submit(site, student, BEGAN, FINISHED)
    site.wait_for(before, "succeeded", user=student)

    assert engine.process is not None
    engine.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: _known_of_the_pool(site, "is slow"), "the pool says so")
        slow = _wait_for_a_reason(site, submit(site, student, BEGAN, FINISHED), "local is slow")
        began = time.monotonic()
        for path in ("/pool", "/queue", "/requests", "/usage"):
            assert site.api("GET", path, user=student).is_success
        assert time.monotonic() - began < 10
    finally:
        engine.process.send_signal(signal.SIGCONT)
    site.wait_for(slow, "succeeded", user=student)

    engine.kill()
    eventually(lambda: _known_of_the_pool(site, "does not answer"), "the pool says so")
    down = _wait_for_a_reason(site, submit(site, student, BEGAN, FINISHED), "local does not answer")
    engine.start()
    site.wait_for(down, "succeeded", user=student)
    _each_was_executed_once(site, audit(site.state))


def _known_of_the_pool(site: Installation, why: str) -> bool:
    devices = site.api("GET", "/pool", user=STUDENTS[0]).json()["devices"]
    return all(why in device["why"] for device in devices)


def _wait_for_a_reason(site: Installation, request: str, reason: str) -> str:
    def told() -> bool:
        found = site.request(request, user=STUDENTS[0])
        assert found["state"] == "queued", found
        wait = found["wait"]  # none before the first cycle that sees it
        return wait is not None and reason in wait["sentence"]

    eventually(told, f"it waits, since {reason}")
    return request


@pytest.mark.parametrize(
    ("seed", "jobs", "kills"),
    [campaign(7, 6, 2), campaign(8, 100, 20, slow=True)],
)
def test_every_job_is_executed_once_whatever_is_killed(
    site: Installation, engine: DockerEngine, seed: int, jobs: int, kills: int
) -> None:
    chance, targets = drawn(site, seed, kills, PARTS)
    earlier, known = len(read(site.state).requests), 0
    for number, target in enumerate(targets, 1):
        while known < jobs * number // kills:
            # Every second one is on CPU, so that warm containers are tested, too.
            body = work(earlier + known, chance) | {"devices": known % 2}
            insist(site, STUDENTS[known % len(STUDENTS)], body)
            known += 1
        time.sleep(chance.uniform(0, 2))  # the moment is the point, nothing is waited for
        if target == "engine":
            engine.kill()
            time.sleep(chance.uniform(0, 2))
            engine.start()
        else:
            eventually(partial(kill, site, target), f"the {target} is killed", within=120)
    healthy(site)

    books = eventually(lambda: all_ended(site), "every job ends", within=120 + 3 * jobs)
    assert len(books.requests) == earlier + jobs
    _each_was_executed_once(site, books)
    each_ran_alone(site, books)
    every_second_is_charged(site, books)
    eventually(lambda: free(site) == len(site.ready["devices"]), "the whole pool is free")
    eventually(lambda: _attempts(engine) == [], "no container of a lease is left")
    audit(site.state)


def _each_was_executed_once(site: Installation, books: Books) -> None:
    wrong = [(each.id, each.state, each.path) for each in books.requests if _went_wrong(each.path)]
    assert wrong == []
    expected = {each.id: [f"{each.id}.{each.epoch}"] for each in books.requests}
    assert executions(site, "began") == expected
    assert executions(site, "finished") == expected


def _went_wrong(path: tuple[State, ...]) -> bool:
    return path[-1] is not State.SUCCEEDED or State.LOST in path


def _attempts(engine: DockerEngine) -> list[str]:
    found = engine.client().containers(all=True, filters={"label": "carrel.lease"})
    return list(chain.from_iterable(each["Names"] for each in found))
