"""Orderly restarts of parts or of the whole control plane: work continues."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from ..e2e.support import Installation, eventually
from .audit import audit
from .support import (
    BEGAN,
    FINISHED,
    FOR_LONG,
    UNTIL_TOLD,
    executions,
    healthy,
    leader,
    leased,
    reachable,
    ready,
    running_session,
    submit,
    tell,
)


@pytest.mark.slow  # test_kills.py kills the hub, and the next test ends it
def test_case_15_a_hub_that_shuts_down_keeps_its_servers(site: Installation) -> None:
    session = running_session(site, "student1")
    server = leader(site, session, user="student1")
    waiting = site.start_session("student3", devices=2)["id"]
    site.wait_for(waiting, "queued", user="student3")
    assert reachable(site, "student1")
    asked = psutil.Process(site.pid_of("hub"))

    asked.send_signal(signal.SIGTERM)
    assert not psutil.wait_procs([asked], timeout=90)[1]
    assert reachable(site, "student1"), "while there is no hub"
    healthy(site)

    assert site.pid_of("hub") != asked.pid
    # It looks at its servers after it has begun to answer.
    eventually(lambda: ready(site, "student1"), "the new hub knows the session")
    assert leader(site, session, user="student1") == server
    eventually(lambda: reachable(site, "student1"), "the session answers its owner")
    # Who waits has kept the place, and comes.
    site.api("DELETE", f"/requests/{session}", user="student1")
    came = site.wait_for(waiting, "running", user="student3")
    assert came["id"] == waiting
    eventually(lambda: ready(site, "student3"), "the hub leads student3 into the session")


def test_ctrl_c_leaves_work_to_the_next_start_and_down_ends_it(site: Installation) -> None:
    session = running_session(site, "student1")
    short = submit(site, "student2", BEGAN, UNTIL_TOLD, FINISHED)
    site.wait_for(short, "running", user="student2")
    server, runner = (
        leader(site, session, user="student1"),
        leader(site, short, user="student2"),
    )

    site.interrupt()
    assert server.is_running()
    assert runner.is_running()
    audit(site.state)
    site.up()

    assert leader(site, session, user="student1") == server
    eventually(lambda: reachable(site, "student1"), "the session answers its owner again")
    eventually(lambda: ready(site, "student1"), "the hub knows the session again")
    assert leader(site, short, user="student2") == runner
    tell(site, "student2")
    site.wait_for(short, "succeeded", user="student2")
    assert executions(site, "finished")[short] == executions(site, "began")[short]
    assert executions(site, "finished")[short] == [f"{short}.1"]

    long = submit(site, "student2", FOR_LONG)
    site.wait_for(long, "running", user="student2")
    said = site.down()
    assert f"Stopping session {session} of student1" in said
    assert f"Stopping job {long} of student2" in said
    assert said.endswith("Everything is stopped.\n")
    assert leased(site) == []
    states = {request.id: request.state for request in audit(site.state).requests}
    assert (states[session], states[long]) == ("cancelled", "cancelled")
    assert os.path.exists(site.state / "outputs" / long), "what it had done is kept"
