"""The same escape attempts inside a session of a real hub, and with tokens of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from carrel.hub.config.state_folder import StateFolder
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.hub.records.json_value import Json
from carrel.spawners.docker.containers.networks import Networks
from carrel.spawners.docker.engine.client import DockerClient

from ..e2e.support import Installation, eventually
from .escapes import ATTEMPTS, Attempt
from .inside import inside
from .lab import USER, answers, containers, stop, wait_until_free
from .surroundings import Place, place_of, succeeds

pytestmark = pytest.mark.docker


@pytest.fixture
def place(lab: Installation, docker_host: DockerHost, base_image: str) -> Iterator[Place]:
    engine = DockerClient(docker_host)
    networks = Networks(
        engine=engine,
        installation=StateFolder.at(Path(lab.state)).installation,
        subnets=lab.setting("docker_subnets"),
    )
    with ExitStack() as stack:
        yield place_of(
            stack,
            url=docker_host.url,
            networks=networks,
            image=base_image,
            address=lab.setting("internal_ip"),
            port=lab.setting("service_port"),
        )


def test_no_attempt_gets_out_of_a_session(
    session: dict[str, Any], place: Place, client: docker.APIClient
) -> None:
    (found,) = containers(client, session)
    # Each is possible at this moment, at these addresses: without the hardening.
    proves_nothing = [a.name for a in ATTEMPTS if not place.tried(a, place.controls[a.control])]
    assert proves_nothing == []
    escaped = [attempt.name for attempt in ATTEMPTS if place.tried(attempt, found["Id"])]
    assert escaped == []
    assert place.tried(SERVICE, found["Id"]), "the firewall has one opening"


SERVICE = Attempt(
    name="reach the service",
    source="""
import socket
socket.create_connection((at["service"], at["service_port"]), timeout=5).close()
print("ESCAPED")
""",
)


# -- with another user's token --------------------------------------------------------------

CALL = """
import urllib.request
told = None if at["body"] is None else json.dumps(at["body"]).encode()
headers = {"Authorization": f"token {at['token']}", "Content-Type": "application/json"}
asked = urllib.request.Request(at["url"], data=told, headers=headers, method=at["method"])
with urllib.request.urlopen(asked, timeout=20) as answer:
    print("ESCAPED" if answer.status < 300 else answer.status)
"""


@dataclass(frozen=True, kw_only=True)
class Inside:
    """A container that speaks with the hub and the service."""

    lab: Installation
    client: docker.APIClient
    container: str
    token: str

    def _may(self, method: str, url: str, token: str, body: Json = None) -> bool:
        at: dict[str, Json] = {"method": method, "url": url, "token": token, "body": body}
        return succeeds(self.client, self.container, CALL, at)

    def service(
        self, path: str, *, token: str = "", method: str = "GET", body: Json = None
    ) -> bool:
        address = f"http://{self.lab.setting('internal_ip')}:{self.lab.setting('service_port')}"
        url = f"{address}/services/carrel/api/v1{path}"
        return self._may(method, url, token or self.token, body)

    def hub(self, path: str, *, token: str = "", method: str = "GET") -> bool:
        return self._may(method, f"{self.lab.hub_api}{path}", token or self.token)

    def reports(self, lease: str, *, token: str = "") -> bool:
        """As the runner of this lease."""
        nothing: Json = {"events": []}
        return self.service(f"/leases/{lease}/events", token=token, method="POST", body=nothing)


def test_a_sessions_token_is_for_its_own_and_ends_with_it(
    lab: Installation, client: docker.APIClient
) -> None:
    theirs = _job(lab, "student2")
    first, request = _session(lab, client)
    own = first.token
    assert first.service(f"/requests/{request}")
    assert first.hub("/user")
    assert not first.service(f"/requests/{theirs}")
    assert not first.service(f"/requests/{theirs}", method="DELETE")
    assert not first.service(f"/requests/{theirs}/log")
    for path in ("/users/student2", "/users", "/services", "/proxy"):
        assert not first.hub(path)
    assert not first.hub("/users/student2/server", method="DELETE")
    assert not first.hub(f"/users/{USER}/tokens", method="POST"), "no token that outlives it"
    assert lab.request(theirs, user="student2")["state"] == "running"

    stop(lab, {"id": request})
    wait_until_free(lab)
    second, mine = _session(lab, client)
    assert second.hub("/user")
    assert second.service("/requests")
    eventually(lambda: not second.hub("/user", token=own), "the hub has forgotten it")
    eventually(lambda: not second.service("/requests", token=own), "the service too", within=20)
    # Its own token ends its own session.
    assert second.service(f"/requests/{mine}", method="DELETE")
    wait_until_free(lab)
    lab.api("DELETE", f"/requests/{theirs}", user="student2")


def test_a_jobs_token_is_for_its_own_attempt_and_ends_with_it(
    lab: Installation, client: docker.APIClient
) -> None:
    names = {user: _job(lab, user) for user in (USER, "student2")}
    mine, theirs = (_of_job(lab, client, names[user]) for user in (USER, "student2"))
    own, other = (f"{names[user]}.1" for user in (USER, "student2"))
    assert mine.reports(own)
    assert theirs.reports(other)
    assert not mine.reports(other)
    assert not mine.service(f"/requests/{names[USER]}"), "it reads nothing"
    assert not mine.hub("/user")

    lab.api("DELETE", f"/requests/{names[USER]}", user=USER)
    lab.wait_for(names[USER], "cancelled", user=USER)
    assert not theirs.reports(own, token=mine.token)
    assert theirs.reports(other)
    lab.api("DELETE", f"/requests/{names['student2']}", user="student2")
    lab.wait_for(names["student2"], "cancelled", user="student2")


def _session(lab: Installation, client: docker.APIClient) -> tuple[Inside, str]:
    request = lab.start_session(USER)
    lab.wait_for(request["id"], "running", user=USER)
    answers(lab)
    (found,) = containers(client, request)
    token = inside(client, found["Id"], "printenv", "JUPYTERHUB_API_TOKEN").strip()
    made = Inside(lab=lab, client=client, container=found["Id"], token=token)
    return made, str(request["id"])


def _job(lab: Installation, user: str) -> str:
    """One that runs until it is told, on no device."""
    body = {"group": "cs101", "devices": 0, "seconds": 600, "command": ["sleep", "600"]}
    made = lab.api("POST", "/requests", user=user, json=body)
    assert made.status_code == 201, made.text
    request = str(made.json()["id"])
    lab.wait_for(request, "running", user=user)
    return request


def _of_job(lab: Installation, client: docker.APIClient, request: str) -> Inside:
    # By its name: one that waited for its job has no labels of it.
    (found,) = client.containers(filters={"name": f"-{request}.1$"})
    order = json.loads(inside(client, found["Id"], "cat", "/carrel/attempt/order.json"))
    return Inside(lab=lab, client=client, container=found["Id"], token=order["token"])
