"""Sessions and jobs that end without being stopped by a user."""

from __future__ import annotations

import time

import psutil
import pytest

from carrel.spawners.processes import lease_processes

from ..e2e.support import Installation, eventually
from ..promises import in_time
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

LIMIT = 20
"""Seconds of a short session: longer than a start may take."""


def test_case_16_the_death_of_a_server_frees_its_device_within_five_seconds(
    desk: Installation,
) -> None:
    def death() -> dict[str, float]:
        session = running_session(desk, "student1")
        died = _kill(leader(desk, session, user="student1"))
        ended = desk.wait_for(session, "failed", user="student1")
        assert ended["cause"]["code"] == "server_died"
        assert free(desk) == 2
        eventually(lambda: servers(desk, "student1") == {}, "the hub shows it stopped")
        gone = time.time()
        # Charged to the second: up to the last time that it was seen.
        lease = _lease(desk, session)
        assert lease.charged_until <= died + 0.1
        ledger = desk.ledger("student1")
        charged = sum(e["device_seconds"] for e in ledger if e["lease_id"] == lease.id)
        assert charged == pytest.approx(lease.charged_until - lease.granted_at)
        return {
            "failed": ended["ended_at"] - died,
            "gone at the hub": gone - died,
            "not charged": died - lease.charged_until,
        }

    in_time(death, {"failed": 5, "gone at the hub": 5, "not charged": 1.5})

    # At once, even before the hub has noticed.
    again = running_session(desk, "student1")
    _kill(leader(desk, again, user="student1"))
    desk.wait_for(again, "failed", user="student1")
    running_session(desk, "student1")


@pytest.mark.slow  # spawners/sessions/test_local.py shows it of a hub with the spawner alone
def test_case_17_the_reason_of_an_early_death_is_shown_within_three_seconds(
    desk: Installation,
) -> None:
    in_time(lambda: _early_death(desk, "student2"), {"failed": 1.5, "gone at the hub": 5})
    running_session(desk, "student2")


def _early_death(site: Installation, user: str) -> dict[str, float]:
    config = home(site, user) / ".jupyter" / "jupyter_server_config.py"
    config.parent.mkdir(exist_ok=True)
    config.write_text('raise SystemExit("broken config")\n')
    try:
        session = site.start_session(user)["id"]
        ended = site.wait_for(session, "failed", user=user)
        known = time.time()
    finally:
        config.unlink()
    assert ended["cause"]["code"] == "start_failed"
    assert ended["cause"]["details"] == "broken config"
    # Its last words are its death; before them it spends a second or more on its imports.
    died = (site.state / "logs" / "sessions" / f"{user}.log").stat().st_mtime
    eventually(lambda: servers(site, user) == {}, "the hub knows")
    return {"failed": ended["ended_at"] - died, "gone at the hub": time.time() - known}


def test_a_session_whose_time_is_over_is_stopped(desk: Installation) -> None:
    def life() -> dict[str, float]:
        session = desk.start_session("student3", hours=LIMIT / 3600)["id"]
        ended = desk.wait_for(session, "timed_out", user="student3")
        known = time.time()
        assert ended["cause"]["message"] == f"It reached its time limit of {LIMIT} s."
        assert ended["started_at"] is not None, "it ran"
        assert free(desk) == 2
        eventually(lambda: servers(desk, "student3") == {}, "the hub knows")
        lease = _lease(desk, session)
        assert lease.released_at is not None
        assert lease.released_at - lease.granted_at >= LIMIT
        assert lease.released_at >= lease.charged_until
        return {
            "released after": lease.released_at - lease.granted_at,
            "not charged": lease.released_at - lease.charged_until,
            "gone at the hub": time.time() - known,
        }

    in_time(life, {"released after": LIMIT + 5, "not charged": 2, "gone at the hub": 5})


def test_case_24_a_killed_runner_leaves_its_partial_output(desk: Installation) -> None:
    in_time(lambda: _killed_runner(desk, "student1"), {"failed": 5})


def _killed_runner(site: Installation, user: str) -> dict[str, float]:
    job = submit(site, user, *seconds_of_work(90), retries=0)
    eventually(lambda: _done(site, job, user) >= 2, "two cells are done")
    lease = lease_of(site, job, user=user)
    assert len(site.processes_of(lease)) >= 2, "a runner and its kernel"
    died = _kill(leader(site, job, user=user))

    ended = site.wait_for(job, "failed", user=user)
    assert ended["cause"]["code"] == "lost"
    assert free(site) == 2
    assert site.processes_of(lease) == []
    output = site.cli("output", job, "-o", "-", user=user).stdout
    assert "cell 0" in output
    assert "cell 1" in output
    assert "cell 89\\n" not in output
    return {"failed": ended["ended_at"] - died}


def _done(site: Installation, job: str, user: str) -> int:
    progress = site.request(job, user=user)["progress"]
    return int(progress["done"]) if progress else 0


def _kill(process: psutil.Process) -> float:
    """kill -9; returns the moment of its death."""
    process.kill()
    died = time.time()
    assert lease_processes.wait_gone([process], time.monotonic() + 60)
    return died


def _lease(site: Installation, request: str) -> Lease:
    return read(site.state).leases_of(request)[-1]
