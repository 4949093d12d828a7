"""Sessions in real containers: what they get, and what becomes of them when something dies."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest

from ..docker_engine import DockerEngine, site_file
from ..e2e.support import Installation, eventually, installation
from ..requirements import need

pytestmark = pytest.mark.docker

CONFIG = """
c.DockerSpawner.volumes = {{"{data}": {{"bind": "/site-data", "mode": "ro"}}}}
c.DockerSpawner.mem_limit = "700M"
c.DockerSpawner.environment = {{"SITE": "cs", "NVIDIA_VISIBLE_DEVICES": "all"}}
c.DockerSpawner.extra_host_config = {{"privileged": True, "cap_add": ["SYS_ADMIN"]}}

async def before(spawner):
    if spawner.name == "broken":
        spawner.cmd = ["sh", "-c", "echo these are my last words; exit 3"]

c.Spawner.pre_spawn_hook = before
"""
USER = "student1"
HOME_MIB = 64
LIMITED = os.geteuid() == 0 and Path("/dev/loop-control").exists()
ENDED = ("cancelled", "failed", "succeeded", "lost")


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("containers")
    state, data = folder / "state", folder / "data"
    data.mkdir()
    (data / "note").write_text("of the site")
    site_file(state, docker_engine, f'home_size = "{HOME_MIB}MiB"\n' if LIMITED else "")
    (state / "jupyterhub_config.py").write_text(CONFIG.format(data=data))
    course = state / "courses" / "cs101" / "data"
    course.mkdir(parents=True)
    (course / "set").write_text("of the course")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


@pytest.fixture
def client(docker_engine: DockerEngine) -> Iterator[docker.APIClient]:
    made = docker_engine.client()
    yield made
    made.close()


@pytest.fixture
def session(site: Installation) -> Iterator[dict[str, Any]]:
    """student1's, on the one device, running."""
    request = site.start_session(USER)
    site.wait_for(request["id"], "running", user=USER)
    answers(site)
    yield site.request(request["id"], user=USER)
    if site.request(request["id"], user=USER)["ended_at"] is None:
        stop(site, request)
    wait_until_free(site)


def stop(site: Installation, request: dict[str, Any]) -> None:
    """As its owner does."""
    answer = site.api("DELETE", f"/requests/{request['id']}", user=USER)
    assert answer.is_success, answer.text
    ended = site.wait_for(request["id"], *ENDED, user=USER)
    assert ended["state"] in ("cancelled", "succeeded"), ended


def wait_until_free(site: Installation) -> None:
    def free() -> bool:
        pool = site.api("GET", "/pool", user=USER).json()
        return [device["state"] for device in pool["devices"]] == ["free"]

    eventually(free, "the device is free")


def containers(client: docker.APIClient, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the request, whatever became of them."""
    label = f"carrel.request={request['id']}"
    return list(client.containers(all=True, filters={"label": [label, "carrel.kind=session"]}))


def inside(client: docker.APIClient, container: str, *command: str) -> str:
    made = client.exec_create(container, list(command))
    return bytes(client.exec_start(made["Id"])).decode()


def test_a_session_gets_what_it_is_to_have_and_no_more(
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
    # … as far as nobody gets out by it.
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
    found = eventually(lambda: containers(client, request), "its container")
    kill_the_hub(site)
    running = site.wait_for(request["id"], "running", user=USER)
    answers(site)
    assert [each["Id"] for each in containers(client, request)] == [found[0]["Id"]]
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


def test_a_session_that_dies_as_it_starts_says_its_last_words(
    site: Installation, client: docker.APIClient
) -> None:
    request = site.start_session(USER, "broken")
    ended = site.wait_for(request["id"], "failed", user=USER, within=60)
    assert "these are my last words" in json.dumps(ended["cause"])
    log = site.state / "logs" / "sessions" / f"{USER}--broken.log"
    assert "these are my last words" in log.read_text()
    eventually(lambda: not containers(client, request), "nothing is left of it")
    wait_until_free(site)


def test_a_full_home_gets_a_recovery_session_that_says_so(
    site: Installation, client: docker.APIClient
) -> None:
    need("loop", LIMITED, "homes with a size need root and loop devices")
    big = site.state / "homes" / USER / "big"
    with pytest.raises(OSError, match="No space"):
        big.write_bytes(bytes(HOME_MIB << 20))

    request = site.start_session(USER)
    site.wait_for(request["id"], "running", user=USER)
    answers(site)
    (found,) = containers(client, request)
    assert "Your home is full" in inside(client, found["Id"], "printenv", "CARREL_RECOVERY")
    assert inside(client, found["Id"], "sh", "-c", "cd; rm big && echo done > work") == ""
    stop(site, request)
    wait_until_free(site)

    request = site.start_session(USER)
    site.wait_for(request["id"], "running", user=USER)
    (found,) = containers(client, request)
    assert inside(client, found["Id"], "printenv", "CARREL_RECOVERY") == ""
    assert inside(client, found["Id"], "sh", "-c", "cat ~/work") == "done\n"
    stop(site, request)
    wait_until_free(site)


def kill_the_hub(site: Installation) -> None:
    """And wait for the one that takes its place."""
    site.kill("hub")

    def back() -> bool:
        try:
            return httpx.get(site.hub_api, timeout=30).is_success
        except httpx.TransportError:
            return False

    eventually(back, "the hub is back")


def answers(site: Installation) -> None:
    """Through the proxy; who asks for no more than its version need not be signed in."""

    def asked() -> bool:
        try:
            answer = httpx.get(f"{site.url}/user/{USER}/api", timeout=30)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK and "version" in answer.text

    eventually(asked, "the session answers")
