"""kill -9 of each of the three processes: work and queue survive, charges are exact."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import psutil
import pytest

from carrel.hub.scheduling.model.states import State

from ..e2e.support import Installation, eventually
from .audit import Request, audit, read
from .kernels import Kernel
from .support import (
    BEGAN,
    FINISHED,
    FOR_LONG,
    UNTIL_TOLD,
    executions,
    healthy,
    leader,
    lease_of,
    nothing_left,
    reachable,
    ready,
    running_session,
    seconds_of_work,
    submit,
    tell,
)


def test_case_14_a_session_a_job_and_a_place_in_the_queue_outlive_each_part(
    site: Installation,
) -> None:
    job = submit(site, "student2", BEGAN, *seconds_of_work(2), UNTIL_TOLD, FINISHED)
    session = running_session(site, "student1")
    kernel = Kernel.start(site, "student1")
    kernel.run("x = 41")
    counted = count(42)
    site.wait_for(job, "running", user="student2")
    waiting = site.start_session("student3")["id"]
    eventually(lambda: _place(site, waiting) == 1, "student3 has place 1")
    server, runner = (
        leader(site, session, user="student1"),
        leader(site, job, user="student2"),
    )

    for part in ("service", "hub", "proxy"):
        killed = site.pid_of(part)
        site.kill(part)

        eventually(lambda: _place(site, waiting) == 1, "student3 keeps place 1")
        healthy(site)
        assert site.pid_of(part) != killed
        assert runner.is_running()
        # The session is still the same process, with the same kernel and its memory.
        eventually(lambda: reachable(site, "student1"), "the session answers its owner")
        assert leader(site, session, user="student1") == server
        assert kernel.run("x += 1; print(x)") == f"{next(counted)}\n"
    tell(site, "student2")
    ended = site.wait_for(job, "succeeded", user="student2")
    assert executions(site, "finished")[job] == [ended["lease"]["id"]]
    assert executions(site, "began")[job] == [ended["lease"]["id"]]
    came = site.wait_for(waiting, "running", user="student3")
    assert came["lease"]["epoch"] == 1
    eventually(lambda: ready(site, "student3"), "the hub leads student3 into the session")
    assert lease_of(site, session, user="student1").endswith(".1")

    charged = sum(e["device_seconds"] for e in site.ledger("student2") if e["request_id"] == job)
    assert charged == pytest.approx(ended["device_seconds"], abs=0.001)
    audit(site.state)


@pytest.mark.parametrize(
    ("part", "moment"),
    [
        pytest.param(
            "service",
            State.GRANTED,
            id="the service after the lease is written",
            marks=pytest.mark.slow,
        ),
        pytest.param("service", State.STARTING, id="the service after the intent is written"),
        pytest.param("hub", State.GRANTED, id="the hub after the lease is written"),
        pytest.param(
            "hub",
            State.STARTING,
            id="the hub after the intent is written",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_case_1_and_2_killed_around_the_start_of_a_session(
    site: Installation, part: str, moment: State
) -> None:
    request = site.start_session("student1")["id"]
    eventually(
        lambda: moment in _books_of(site, request).path,
        f"the session is {moment}",
        every=0.002,
    )
    site.kill(part)

    running = site.wait_for(request, "running", user="student1")
    eventually(lambda: ready(site, "student1"), "the hub leads into the session", within=120)
    # One start, or a clean release and one start: never two servers, nor one on an old lease.
    assert _servers(site, request, running["lease"]["epoch"]) == [running["lease"]["pid"]]
    assert _books_of(site, request).path.count(State.RUNNING) == 1


def test_case_3_what_has_ended_is_not_admitted_again(site: Installation) -> None:
    ended = [submit(site, "student1", BEGAN, FINISHED), submit(site, "student2", "1/0")]
    site.wait_for(ended[0], "succeeded", user="student1")
    site.wait_for(ended[1], "failed", user="student2")
    cancelled = submit(site, "student1", FOR_LONG)
    site.api("DELETE", f"/requests/{cancelled}", user="student1")
    site.wait_for(cancelled, "cancelled", user="student1")
    nothing_left(site)
    before = [request for request in read(site.state).requests if request.state.value != "queued"]

    for part in ("service", "hub"):
        site.kill(part)
    # Something new passes through the whole path: the others have had their chance.
    eventually(lambda: site.api("GET", "/pool", user="student1").is_success, "the service is back")
    later = submit(site, "student1", FINISHED)
    site.wait_for(later, "succeeded", user="student1")
    now = {request.id: request for request in read(site.state).requests}
    assert [now[request.id] for request in before] == before
    assert executions(site, "finished")[ended[0]] == [f"{ended[0]}.1"]


def _place(site: Installation, request: str) -> int:
    """Position in the queue; 0 if it is not queued, or the service does not answer."""
    try:
        wait = site.wait_for(request, "queued", user="student3", within=60)["wait"]
    except AssertionError:
        return 0
    return int(wait["place"]) if wait else 0


def _books_of(site: Installation, request_id: str) -> Request:
    return next(r for r in read(site.state).requests if r.id == request_id)


def _servers(site: Installation, request: str, epochs: int) -> list[int]:
    """The single-user servers that run on any lease of a request.

    What one of them has just forked still looks like it.
    """
    found: dict[int, int] = {}
    for epoch in range(1, epochs + 1):
        for process in site.processes_of(f"{request}.{epoch}"):
            with suppress(psutil.NoSuchProcess):  # what was forked may be gone by now
                if any("singleuser" in word for word in process.cmdline()):
                    found[process.pid] = process.ppid()
    return [pid for pid, parent in found.items() if parent not in found]
