"""How sessions and jobs come to an end that nobody asked for."""

from __future__ import annotations

import time

import psutil
import pytest

from ..e2e.support import Installation, eventually
from .audit import Lease, read
from .support import (
    free,
    home,
    leader,
    lease_of,
    running_session,
    seconds_of_work,
    servers,
    submit,
)


def test_case_16_the_death_of_a_server_frees_its_device_within_five_seconds(
    desk: Installation,
) -> None:
    session = running_session(desk, "student1")
    died = _kill(leader(desk, session, user="student1"))

    ended = desk.wait_for(session, "failed", user="student1", within=5)
    assert ended["cause"]["code"] == "server_died"
    assert free(desk) == 2
    left = 5 - (time.time() - died)
    eventually(lambda: servers(desk, "student1") == {}, "the hub shows it stopped", within=left)
    # Charged to the second: up to the last time that it was seen.
    lease = _lease(desk, session)
    assert died - 1.5 < lease.charged_until <= died + 0.1
    ledger = desk.ledger("student1")
    charged = sum(e["device_seconds"] for e in ledger if e["lease_id"] == lease.id)
    assert charged == pytest.approx(lease.charged_until - lease.granted_at)

    # At once, even before the hub has noticed.
    again = running_session(desk, "student1")
    _kill(leader(desk, again, user="student1"))
    desk.wait_for(again, "failed", user="student1", within=5)
    running_session(desk, "student1")


def test_case_17_the_reason_of_an_early_death_is_shown_within_three_seconds(
    desk: Installation,
) -> None:
    config = home(desk, "student2") / ".jupyter" / "jupyter_server_config.py"
    config.parent.mkdir(exist_ok=True)
    config.write_text('raise SystemExit("broken config")\n')
    try:
        session = desk.start_session("student2")["id"]
        ended = desk.wait_for(session, "failed", user="student2", within=15)
    finally:
        config.unlink()
    assert ended["cause"]["code"] == "start_failed"
    assert ended["cause"]["details"] == "broken config"
    # Its last words are its death; before them it spends a second or more on its imports.
    died = (desk.state / "logs" / "sessions" / "student2.log").stat().st_mtime
    assert ended["ended_at"] - died < 1.5
    eventually(lambda: servers(desk, "student2") == {}, "the hub knows", within=5)
    running_session(desk, "student2")


def test_a_session_whose_time_is_over_is_stopped(desk: Installation) -> None:
    session = desk.start_session("student3", hours=0.002)["id"]
    desk.wait_for(session, "running", user="student3")

    ended = desk.wait_for(session, "timed_out", user="student3")
    assert ended["cause"]["message"] == "Its time limit of 7 s is over."
    assert free(desk) == 2
    eventually(lambda: servers(desk, "student3") == {}, "the hub knows", within=5)
    lease = _lease(desk, session)
    assert lease.released_at is not None
    assert 7 <= lease.released_at - lease.granted_at < 7 + 5
    assert 0 <= lease.released_at - lease.charged_until < 2


def test_case_24_a_killed_runner_leaves_its_partial_output(desk: Installation) -> None:
    job = submit(desk, "student1", *seconds_of_work(30))
    eventually(lambda: _done(desk, job) >= 2, "two cells are done")
    lease = lease_of(desk, job, user="student1")
    assert len(desk.processes_of(lease)) >= 2, "a runner and its kernel"
    _kill(leader(desk, job, user="student1"))

    ended = desk.wait_for(job, "failed", user="student1", within=5)
    assert ended["cause"]["code"] == "lost"
    assert free(desk) == 2
    assert desk.processes_of(lease) == []
    output = desk.cli("output", job, "-o", "-", user="student1").stdout
    assert "cell 0" in output
    assert "cell 1" in output
    assert "cell 29\\n" not in output


def _done(site: Installation, job: str) -> int:
    progress = site.request(job, user="student1")["progress"]
    return int(progress["done"]) if progress else 0


def _kill(process: psutil.Process) -> float:
    """kill -9; returns the moment of its death."""
    process.kill()
    died = time.time()
    eventually(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, "it died"
    )
    return died


def _lease(site: Installation, request: str) -> Lease:
    return read(site.state).leases_of(request)[-1]
