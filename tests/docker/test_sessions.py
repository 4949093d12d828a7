"""Sessions in real containers: what they get, and what happens when a part dies."""

from __future__ import annotations

import json
import time
from typing import Any

import docker
import pytest

from ..e2e.support import Installation, eventually
from ..faults.support import submit
from ..requirements import need
from .inside import inside
from .lab import (
    ENDED,
    LIMITED,
    USER,
    answers,
    containers,
    fill,
    kill_the_hub,
    stop,
    wait_until_free,
)

pytestmark = pytest.mark.docker


@pytest.fixture
def site(lab: Installation) -> Installation:
    return lab


def test_a_session_gets_exactly_its_lease(
    site: Installation, session: dict[str, Any], client: docker.APIClient
) -> None:
    (found,) = containers(client, session)
    body = client.inspect_container(found["Id"])
    host = body["HostConfig"]
    environment = dict(each.split("=", 1) for each in body["Config"]["Env"])

    # Of the lease.
    assert body["Config"]["Labels"]["carrel.lease"] == session["lease"]["id"]
    assert environment["CUDA_VISIBLE_DEVICES"] == session["lease"]["devices"][0]["id"]
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "CARREL_STATE" not in environment
    # What the administrator set for DockerSpawner counts …
    assert environment["SITE"] == "cs"
    assert host["Memory"] == 700 * 2**20
    assert inside(client, found["Id"], "cat", "/site-data/note") == "of the site"
    # … as far as it does not weaken the isolation.
    assert host["Privileged"] is False
    assert not host["CapAdd"]
    assert host["ReadonlyRootfs"] is True
    assert "CapEff:\t0000000000000000" in inside(client, found["Id"], "cat", "/proc/self/status")
    # The person's own, and the course's.
    assert inside(client, found["Id"], "sh", "-c", "cd; touch mine && stat -c %u mine") == "1000\n"
    assert (site.state / "homes" / USER / "mine").exists()
    assert inside(client, found["Id"], "cat", "/course/cs101/set") == "of the course"
    refused = inside(client, found["Id"], "sh", "-c", "echo mine > /course/cs101/set")
    assert "Read-only file system" in refused


def test_a_container_removed_by_hand_frees_its_device_and_the_session_starts_again(
    site: Installation, session: dict[str, Any], client: docker.APIClient
) -> None:
    (found,) = containers(client, session)
    client.remove_container(found["Id"], force=True)
    removed = time.monotonic()
    wait_until_free(site)
    assert time.monotonic() - removed < 5.0
    ended = site.wait_for(session["id"], *ENDED, user=USER)
    assert ended["state"] == "failed", ended
    assert ended["cause"]["code"] == "server_died"

    again = site.wait_for(site.start_session(USER)["id"], "running", user=USER)
    (new,) = containers(client, again)
    assert new["Id"] != found["Id"]
    stop(site, again)
    eventually(lambda: not containers(client, again), "nothing is left of it")


def test_a_session_outlives_the_hub(
    site: Installation, session: dict[str, Any], client: docker.APIClient
) -> None:
    (before,) = containers(client, session)
    kill_the_hub(site)
    answers(site)
    (after,) = containers(client, session)
    assert after["Id"] == before["Id"]
    assert after["State"] == "running"
    assert site.request(session["id"], user=USER)["state"] == "running"


def test_a_session_whose_hub_died_as_it_started_is_adopted(
    site: Installation, client: docker.APIClient
) -> None:
    request = site.start_session(USER)

    def begun() -> list[str]:
        """One that was only made holds nothing to adopt."""
        known = containers(client, request)
        return [each["Id"] for each in known if each["State"] == "running"]

    found = eventually(begun, "its container runs")
    kill_the_hub(site)
    running = site.wait_for(request["id"], "running", user=USER)
    answers(site)
    assert [each["Id"] for each in containers(client, request)] == found
    assert running["lease"]["epoch"] == 1
    stop(site, request)
    wait_until_free(site)


def test_a_start_that_is_cancelled_leaves_nothing(
    site: Installation, client: docker.APIClient
) -> None:
    request = site.start_session(USER)
    eventually(lambda: containers(client, request), "its container")
    stop(site, request)
    wait_until_free(site)
    eventually(lambda: not containers(client, request), "nothing is left of it")


def test_a_session_that_dies_at_start_shows_the_end_of_its_log(
    site: Installation, client: docker.APIClient
) -> None:
    request = site.start_session(USER, "broken")
    ended = site.wait_for(request["id"], "failed", user=USER, within=60)
    assert "these are my last words" in json.dumps(ended["cause"])
    log = site.state / "logs" / "sessions" / f"{USER}--broken.log"
    # Who sees the end first says it; the log is kept as the container is taken away.
    eventually(lambda: log.exists() and "these are my last words" in log.read_text(), "its log")
    eventually(lambda: not containers(client, request), "nothing is left of it")
    wait_until_free(site)


def test_a_job_that_is_killed_for_memory_says_so_to_its_owner(site: Installation) -> None:
    job = submit(site, USER, "held = b'1' * (900 << 20)", devices=0)
    ended = site.wait_for(job, "failed", user=USER)
    assert ended["cause"]["code"] == "out_of_memory"
    assert "memory" in ended["cause"]["message"]


def test_a_full_home_gets_a_recovery_session_that_says_so(
    site: Installation, client: docker.APIClient
) -> None:
    need("loop", LIMITED, "homes with a size need root and loop devices")
    fill(site.state / "homes" / USER)

    request = site.start_session(USER)
    site.wait_for(request["id"], "running", user=USER)
    answers(site)
    (found,) = containers(client, request)
    assert "Your home is full" in inside(client, found["Id"], "printenv", "CARREL_RECOVERY")
    assert inside(client, found["Id"], "sh", "-c", "cd; rm -f big && echo done > work") == ""
    stop(site, request)
    wait_until_free(site)

    request = site.start_session(USER)
    site.wait_for(request["id"], "running", user=USER)
    (found,) = containers(client, request)
    assert inside(client, found["Id"], "printenv", "CARREL_RECOVERY") == ""
    assert inside(client, found["Id"], "sh", "-c", "cat ~/work") == "done\n"
    stop(site, request)
    wait_until_free(site)
