"""Two students and one device: a CPU session now, and a held device, claimed or lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from .. import plain_http
from ..faults.support import release_everything
from .support import Installation, eventually, installation

WINDOW = 300.0
"""The claim window for claiming: long enough to restart JupyterHub."""
SHORT = 30.0
"""The claim window that passes without a claim."""


@contextmanager
def with_window(state: Path, seconds: float) -> Iterator[Installation]:
    state.mkdir()
    (state / "settings.json").write_text(json.dumps({"claim_seconds": seconds}))
    with installation(state, "--simulated-devices", "1") as made:
        yield made


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with with_window(tmp_path_factory.mktemp("window") / "state", WINDOW) as made:
        yield made


@pytest.fixture
def site(installed: Installation) -> Iterator[Installation]:
    """The device is free, before and after."""
    yield installed
    release_everything(installed)


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Installation]:
    with with_window(tmp_path / "state", SHORT) as made:
        yield made


def sessions(site: Installation, user: str) -> dict[str, dict[str, Any]]:
    """Return live sessions by server name."""
    found = site.api("GET", "/requests?kind=session", user=user).json()["requests"]
    return {each["server_name"]: each for each in found if not each["ended"]}


def held(site: Installation, request_id: str, *, user: str) -> dict[str, Any]:
    def check() -> dict[str, Any] | None:
        try:
            found = site.request(request_id, user=user)
        except (httpx.HTTPError, AssertionError):
            return None  # a process is restarting
        return found if found["claim_by"] else None

    return eventually(check, f"{request_id} is held")


def answers(site: Installation, user: str, server: str) -> bool:
    """Return whether JupyterHub redirects to the server: it has responded, and has its route."""
    try:
        found = plain_http.get(
            f"http://127.0.0.1:{site.setting('hub_port')}/hub/api/users/{user}",
            headers={"Authorization": f"token {site.secret('service_token')}"},
            timeout=30,
        )
    except httpx.HTTPError:
        return False  # it is restarting
    return bool(found.json()["servers"].get(server, {}).get("ready"))


def ok(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code < 300, answer.text
    return dict(answer.json())


@pytest.mark.slow  # test_desk.py goes the same way on the page
def test_a_device_is_held_and_claimed_while_a_cpu_session_runs(site: Installation) -> None:
    first = site.start_session("student1")
    site.wait_for(first["id"], "running", user="student1")
    second = site.start_session("student2")
    eventually(lambda: site.request(second["id"], user="student2")["wait"], "student2 has a place")

    # student2 does not want to wait: a CPU session now, and the position is kept.
    kept = ok(site.api("POST", f"/requests/{second['id']}/keep-place", user="student2"))
    assert (kept["server_name"], kept["claim"]) == ("gpu", True)
    assert kept["submitted_at"] == second["submitted_at"]
    desk = sessions(site, "student2")[""]
    assert (desk["devices"], desk["id"] != kept["id"]) == (0, True)
    desk = site.wait_for(desk["id"], "running", user="student2")
    eventually(lambda: answers(site, "student2", ""), "the desk on CPU answers", within=120)
    (server,) = site.processes_of(desk["lease"]["id"])[:1]
    again = ok(site.api("POST", f"/requests/{second['id']}/keep-place", user="student2"))
    assert again["server_name"] == "gpu"
    assert sessions(site, "student2")[""]["id"] == desk["id"]
    early = site.api("POST", f"/requests/{kept['id']}/claim", user="student2")
    assert (early.status_code, early.json()["code"]) == (409, "conflict")

    # The device is released while JupyterHub is down; it is held, and JupyterHub returns.
    ok(site.api("DELETE", f"/requests/{first['id']}", user="student1"))
    site.kill("hub")
    waiting = held(site, kept["id"], user="student2")
    assert waiting["state"] == "granted"
    assert waiting["claim_by"] == waiting["lease"]["granted_at"] + WINDOW

    def claimed() -> bool:
        answer = site.api("POST", f"/requests/{kept['id']}/claim", user="student2")
        return answer.status_code == 200

    eventually(claimed, "claimed as soon as the hub is back")
    running = site.wait_for(kept["id"], "running", user="student2")
    eventually(
        lambda: answers(site, "student2", "gpu"), "the session with the device answers", within=120
    )
    (process,) = site.processes_of(running["lease"]["id"])[:1]
    (lent,) = running["lease"]["devices"]
    assert process.environ()["CUDA_VISIBLE_DEVICES"] == lent["id"]
    assert server.is_running(), "the desk on CPU stayed as it was"
    assert answers(site, "student2", "")


@pytest.mark.slow  # hub/sessions/test_held.py goes the same way without processes
def test_an_unclaimed_device_goes_to_the_next_request(hasty: Installation) -> None:
    site = hasty
    body = {"devices": 1, "hours": 1.0, "group": "cs101", "claim": True}
    made = ok(site.api("POST", "/sessions/-", user="student1", json=body))
    assert made["server_name"] == "gpu"
    held(site, made["id"], user="student1")

    # A quote for the next request, and then the request.
    asked = {"quotes": [{"kind": "job", "devices": 1, "seconds": 600}]}
    (quote,) = ok(site.api("POST", "/quotes", user="student2", json=asked))["quotes"]
    assert (quote["place"], quote["starts_now"]) == (1, False)
    command = {"group": "cs101", "devices": 1, "seconds": 600, "command": ["true"]}
    job = ok(site.api("POST", "/requests", user="student2", json=command))

    # The service dies within the claim window.
    site.kill("service")
    ended = site.wait_for(made["id"], "cancelled", user="student1", within=SHORT + 60)
    assert ended["cause"]["code"] == "unclaimed"
    assert ended["cause"]["message"] == (
        "The session was not claimed within 30 seconds; its device was released."
    )
    after = site.wait_for(job["id"], "succeeded", user="student2")

    # Charged from the grant to the end of the window; the next request from then on.
    (*_, last) = [e for e in site.ledger("student1") if e["request_id"] == made["id"]]
    assert last["ends_at"] - ended["lease"]["granted_at"] == pytest.approx(SHORT, abs=0.01)
    assert after["lease"]["granted_at"] >= last["ends_at"]


@pytest.mark.slow
def test_the_command_line_holds_and_claims_a_device(site: Installation) -> None:
    one = site.cli("session", "start", "--devices", "1", "--wait", user="student1")
    assert one.stdout.splitlines()[-1].endswith("/user/student1/")
    waits = site.cli_json("session", "start", "--devices", "1", user="student2")
    quote = site.cli("quote", "--devices", "1", "--hours", "1", user="student2").stdout
    assert quote.startswith("1 device: Queued at position 2")
    refused = site.cli("session", "extend", "-", user="student1", check=False)
    assert "a queued request waits for the device" in refused.stderr
    kept = site.cli("session", "keep-place", "-", user="student2").stdout
    assert f"{waits['id']} keeps its position as the session gpu" in kept
    site.cli("session", "stop", "-", user="student1")
    held(site, waits["id"], user="student2")
    assert "held for you" in site.cli("session", "ls", user="student2").stdout
    claimed = site.cli("session", "claim", "gpu", "--wait", user="student2")
    assert claimed.stdout.splitlines()[-1].endswith("/user/student2/gpu/")
    extended = site.cli("session", "extend", "gpu", "--time", "30m", user="student2").stdout
    assert "runs until" in extended
    assert site.cli("session", "open", "gpu", user="student2").stdout.endswith("/gpu/\n")
