"""Jobs while the service, the hub and runners are killed with -9 at random times."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial
from itertools import count

import psutil
import pytest

from carrel.hub.scheduling.model.states import TERMINAL, State

from ..e2e.support import Installation, eventually
from .audit import Books
from .stress import each_ran_alone, every_second_is_charged, kill, work
from .support import (
    STUDENTS,
    all_ended,
    campaign,
    drawn,
    executions,
    healthy,
    insist,
    mine,
    nothing_left,
)

PARTS = ("service", "hub", "runner")


@pytest.mark.parametrize(
    ("seed", "jobs", "kills"),
    [campaign(4, 6, 3), campaign(5, 100, 50, slow=True)],
)
def test_every_job_ends_once_whatever_is_killed(
    patient: Installation, seed: int, jobs: int, kills: int
) -> None:
    chance, targets = drawn(patient, seed, kills, PARTS)
    submitted = count()

    def submit() -> int:
        number = next(submitted)
        insist(patient, STUDENTS[number % len(STUDENTS)], work(number, chance))
        return number + 1

    def kill_a_runner(*, at_work: bool) -> bool:
        if all_ended(patient):
            submit()  # each one of them was quicker than the look for it
        return _kill_a_runner(patient, chance, at_work=at_work)

    known = 0
    for number, target in enumerate(targets, 1):
        if target == "runner":  # soon after a submission: then there is one
            time.sleep(chance.random())
        while known < jobs * number // kills:
            known = submit()
        if target == "runner":
            at_work = chance.random() < 2 / 3  # else mostly before it has claimed its lease
            soon = partial(kill_a_runner, at_work=at_work)
            eventually(soon, "a runner is killed", within=180)
        else:
            time.sleep(chance.random())  # the moment is the point, nothing is waited for
            eventually(partial(kill, patient, target), f"the {target} is killed", within=120)
    healthy(patient)

    books = eventually(lambda: all_ended(patient), "every job ends", within=120 + 3 * jobs)
    assert len(books.requests) == next(submitted) >= jobs
    _each_ended_as_it_should(patient, books, runners=targets.count("runner"))
    each_ran_alone(patient, books)
    every_second_is_charged(patient, books)
    nothing_left(patient)


# -- what is done to it --------------------------------------------------------------------


def _kill_a_runner(site: Installation, chance: random.Random, *, at_work: bool) -> bool:
    """The runner alone: what it started is for Carrel to find and to end."""
    runners = sorted(_runners(site), key=lambda process: process.pid)
    if at_work:
        books = (executions(site, "began"), executions(site, "finished"))
        began, finished = ({lease for each in book.values() for lease in each} for book in books)
        runners = [each for each in runners if _lease(each) in began - finished]
    if not runners:
        return False
    chosen = chance.choice(runners)
    time.sleep(chance.random() * 0.3)  # the moment is the point, nothing is waited for
    try:
        chosen.kill()
    except psutil.NoSuchProcess:
        return False  # it was quicker
    return True


def _runners(site: Installation) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "carrel.spawners.runner" in words and mine(site, process):
            yield process


def _lease(process: psutil.Process) -> str:
    try:
        return process.environ().get("CARREL_LEASE", "")
    except psutil.Error:
        return ""


# -- what must hold of it ------------------------------------------------------------------


def _each_ended_as_it_should(site: Installation, books: Books, *, runners: int) -> None:
    """A job succeeds, unless its runner was killed and it was not to be tried again."""
    lost = sum(request.path.count(State.LOST) for request in books.requests)
    assert lost <= runners
    done = executions(site, "finished")
    for number, request in enumerate(books.requests):
        assert [state for state in request.path if state in TERMINAL] == [request.state]
        if request.state is State.SUCCEEDED:
            assert done[request.id][-1] == f"{request.id}.{request.epoch}"
        else:
            assert request.state is State.FAILED, request
            assert State.LOST in request.path, request
            assert not number % 2, f"{request.id} was to be tried again"
