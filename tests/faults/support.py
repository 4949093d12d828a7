"""Helpers of the fault tests: submit jobs, count executions, query the hub."""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from .. import plain_http
from ..e2e.support import Installation, brought_up, eventually
from ..hub.notebooks import notebook
from ..ports import free_port
from .audit import Books, audit, read

STUDENTS = ("student1", "student2", "student3")
_WRITE_DOWN = """\
import os, pathlib
with open(pathlib.Path.home() / {book!r}, "a") as book:
    book.write(os.environ["CARREL_REQUEST"] + " " + os.environ["CARREL_LEASE"] + "\\n")
"""
BEGAN = _WRITE_DOWN.format(book="began.txt")
"""A first cell: one line in the home for each execution that began."""
FINISHED = _WRITE_DOWN.format(book="finished.txt")
"""A last cell: one line for each that came to its end."""


UNTIL_TOLD = """\
import pathlib, time
while not (pathlib.Path.home() / "told.txt").exists():
    time.sleep(0.05)
"""
"""A cell that runs until ``tell`` is called for its owner."""


def tell(site: Installation, user: str) -> None:
    (home(site, user) / "told.txt").touch()


FOR_LONG = "import time; time.sleep(600)"
"""A cell for what is stopped in the middle of it."""


def seconds_of_work(seconds: int) -> tuple[str, ...]:
    """Cells of a second each that print their number."""
    return tuple(f"import time; time.sleep(1); print('cell {n}')" for n in range(seconds))


def job_body(*cells: str, devices: int = 1, seconds: int = 600, **more: Any) -> dict[str, Any]:
    return {
        "group": "cs101",
        "devices": devices,
        "seconds": seconds,
        "notebook": {"name": "work.ipynb", "content": notebook(*cells, parameters=None)},
        **more,
    }


def submit(site: Installation, user: str, *cells: str, **more: Any) -> str:
    answer = site.api("POST", "/requests", user=user, json=job_body(*cells, **more))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def insist(site: Installation, user: str, body: dict[str, Any]) -> None:
    """Submit as a careful program does: again with the same key, until there is an answer."""

    def accepted() -> bool:
        try:
            answer = site.api("POST", "/requests", user=user, json=body)
        except httpx.TransportError:
            return False
        assert answer.status_code in {201, 429, 502, 503}, answer.text
        return answer.status_code == 201

    eventually(accepted, f"the job {body['idempotency_key']} is accepted", within=90)


def all_ended(site: Installation) -> Books | None:
    """The books, once nothing in them goes on."""
    books = read(site.state)
    return books if all(request.ended for request in books.requests) else None


def executions(site: Installation, book: str) -> dict[str, list[str]]:
    """The leases under which each request was executed, as its cells wrote them down."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((site.state / "homes").glob(f"*/{book}.txt")):
        for line in path.read_text().splitlines():
            request, lease = line.split()
            found[request].append(lease)
    return dict(found)


# -- the pool ------------------------------------------------------------------------------


def free(site: Installation) -> int:
    return int(site.api("GET", "/pool", user="student1").json()["free"])


def release_everything(site: Installation) -> None:
    """Cancel what is left, wait until all is given back, and audit the books."""
    for request in read(site.state).requests:
        if not request.ended:
            site.api("DELETE", f"/requests/{request.id}", user=request.owner)
    for path in (site.state / "homes").glob("*/told.txt"):
        path.unlink()
    nothing_left(site)


def nothing_left(site: Installation) -> None:
    """The pool is free, no process of a lease is left, and the books are right."""
    total = len(site.ready["devices"])
    eventually(lambda: free(site) == total, "the whole pool is free")
    eventually(lambda: not leased(site), "no process of a lease is left")
    audit(site.state)


def leased(site: Installation) -> list[str]:
    """The leases that processes of this installation carry."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if "CARREL_LEASE" in environment and mine(site, process):
            found.append(environment["CARREL_LEASE"])
    return found


def mine(site: Installation, process: psutil.Process) -> bool:
    """Whether a process works in this state folder, by its folder or its environment."""
    try:
        words = [process.cwd(), *process.cmdline(), process.environ().get("CARREL_STATE", "")]
    except psutil.Error:
        return False
    return any(word.startswith(str(site.state)) for word in words)


def lease_of(site: Installation, request_id: str, *, user: str) -> str:
    return str(site.request(request_id, user=user)["lease"]["id"])


def leader(site: Installation, request_id: str, *, user: str) -> psutil.Process:
    """The first process of a running request, as the service knows it."""
    lease = site.request(request_id, user=user)["lease"]
    process = psutil.Process(lease["pid"])
    assert process.environ()["CARREL_LEASE"] == lease["id"]
    return process


def healthy(site: Installation) -> None:
    """Wait until all three processes answer, through the proxy."""

    def check() -> bool:
        try:
            desk = plain_http.get(f"{site.service}/api/v1/health", timeout=20)
            login = plain_http.get(f"{site.url}/hub/api/", timeout=20)
        except httpx.HTTPError:
            return False
        return desk.is_success and login.is_success

    eventually(check, "the proxy, the hub and the service answer", within=120)


# -- the hub -------------------------------------------------------------------------------


def hub(site: Installation, method: str, path: str, **more: Any) -> httpx.Response:
    """The hub's own API, asked by an administrator's program."""
    headers = {"Authorization": f"token {site.secret('service_token')}"} | more.pop("headers", {})
    url = f"http://127.0.0.1:{site.setting('hub_port')}/hub/api/{path}"
    return plain_http.request(method, url, headers=headers, timeout=90, **more)


def servers(site: Installation, user: str) -> dict[str, Any] | None:
    """The servers of a user as the hub shows them; None if it does not answer."""
    try:
        answer = hub(site, "GET", f"users/{user}")
    except httpx.HTTPError:
        return None
    return dict(answer.json()["servers"]) if answer.is_success else None


def ready(site: Installation, user: str, name: str = "") -> bool:
    found = (servers(site, user) or {}).get(name)
    return bool(found and found["ready"])


def reachable(site: Installation, user: str, name: str = "") -> bool:
    """Whether the session itself answers its owner through the proxy."""
    path = f"{user}/{name}" if name else user
    try:
        answer = plain_http.get(
            f"{site.url}/user/{path}/api/status",
            headers=server_token(site, user),
            timeout=30,
        )
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK and "kernels" in answer.json()


@contextmanager
def browser(site: Installation, user: str) -> Iterator[httpx.Client]:
    """A user signed in with a password, with the cookies of the hub and of the desk."""
    with plain_http.client(base_url=site.url, follow_redirects=True, timeout=90) as client:
        client.get("/hub/login")
        form = {
            "username": user,
            "password": site.passwords[user],
            "_xsrf": client.cookies.get("_xsrf", path="/hub/"),
        }
        desk = client.post("/hub/login", data=form)
        assert (desk.status_code, desk.url.path) == (200, "/services/carrel/"), desk.text
        yield client


def server_token(site: Installation, user: str) -> dict[str, str]:
    """A header that opens this person's servers, which a token of the command line does not."""
    key = f"servers of {user}"
    if key not in site.tokens:
        with browser(site, user) as client:
            client.get("/hub/home")
            answer = client.post(
                f"/hub/api/users/{user}/tokens",
                headers={"X-XSRFToken": client.cookies.get("_xsrf", path="/hub/") or ""},
                json={"note": "test", "scopes": ["access:servers!user"]},
            )
        assert answer.status_code == httpx.codes.CREATED, answer.text
        site.tokens[key] = answer.json()["token"]
    return {"Authorization": f"token {site.tokens[key]}"}


def running_session(
    site: Installation, user: str, name: str = "", *, devices: int = 1, hours: float = 1.0
) -> str:
    """A session that runs and that the hub knows to be ready."""
    request = str(site.start_session(user, name, devices=devices, hours=hours)["id"])
    site.wait_for(request, "running", user=user)
    eventually(lambda: ready(site, user, name), f"the hub shows the session of {user}")
    return request


def home(site: Installation, user: str) -> Path:
    return site.state / "homes" / user


def progress(site: Installation, user: str) -> list[dict[str, Any]]:
    """What the hub tells of the last start of a default server, to its end."""
    text = hub(site, "GET", f"users/{user}/server/progress").text
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]


@contextmanager
def patient_installation(state: Path, *arguments: str) -> Iterator[Installation]:
    """Four simulated devices, and a supervisor that restarts what is killed often at once."""
    made = Installation(
        state=state,
        port=free_port(),
        arguments=("--demo", "--simulated-devices", "4", *arguments),
        program=(sys.executable, str(Path(__file__).with_name("patient_up.py"))),
    )
    with brought_up(made):
        yield made


def campaign(seed: int, jobs: int, kills: int, *, slow: bool = False) -> Any:
    """Parameters of a test that kills parts over jobs."""
    marks = [pytest.mark.slow, pytest.mark.timeout(3600)] if slow else []
    return pytest.param(seed, jobs, kills, id=f"{jobs} jobs, {kills} kills", marks=marks)


def drawn(
    site: Installation, seed: int, kills: int, parts: Sequence[str]
) -> tuple[random.Random, list[str]]:
    """What is killed one after the other, each part as often as another; all may sign in first."""
    chance = random.Random(seed)  # noqa: S311  # to be repeated, not to be secret
    for student in STUDENTS:
        site.token(student)
    targets = [parts[number % len(parts)] for number in range(kills)]
    chance.shuffle(targets)
    return chance, targets
