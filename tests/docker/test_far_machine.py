"""A pool of two machines: sessions, jobs and doctor checks on the other one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from .. import plain_http
from ..docker_engine import DockerEngine
from ..e2e.support import Installation, eventually
from .outside import far_machine, two_machines

pytestmark = [pytest.mark.docker, pytest.mark.slow]

USER = "student1"


@pytest.fixture(scope="module")
def far(docker_engine: DockerEngine, base_image: str) -> Iterator[DockerEngine]:
    with far_machine(docker_engine, base_image) as engine:
        yield engine


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, far: DockerEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    state = tmp_path_factory.mktemp("machines") / "state"
    with two_machines(docker_engine, far, state, devices=1) as made:
        yield made


def test_sessions_and_jobs_run_there_and_are_reached_from_here(site: Installation) -> None:
    site.cli("pool", "drain", "local", user="admin")
    request = site.start_session(USER)
    running = site.wait_for(request["id"], "running", user=USER, within=240)
    assert running["lease"]["devices"][0]["node"] == "far"
    eventually(lambda: answers(site, USER), "the session answers", within=240)
    site.api("DELETE", f"/requests/{request['id']}", user=USER)
    site.wait_for(request["id"], "succeeded", "cancelled", user=USER)
    # Without the internet it still reports to the service, from there.
    body = {"group": "cs101", "devices": 1, "command": ["hostname"], "internet": False}
    job = site.api("POST", "/requests", user=USER, json=body).json()
    ended = site.wait_for(job["id"], "succeeded", "failed", user=USER)
    assert (ended["state"], ended["lease"]["devices"][0]["node"]) == ("succeeded", "far"), ended


def answers(site: Installation, user: str) -> bool:
    """Through the proxy; who asks for no more than its version need not be signed in."""
    answer = plain_http.get(f"{site.url}/user/{user}/api", timeout=30)
    return answer.status_code == httpx.codes.OK and "version" in answer.text


def test_the_doctor_checks_folders_and_connections_from_a_container_there(
    site: Installation,
) -> None:
    said = json.loads(site.cli("doctor", "--state", str(site.state), "--json", check=False).stdout)
    verdicts = {each["subject"]: each["verdict"] for each in said["findings"]}
    for subject in ("firewall", "shared folders", "way to the hub", "way to sessions"):
        assert verdicts[f"far: {subject}"] == "fine", said
