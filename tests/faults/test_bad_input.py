"""Broken, wrong and foreign calls to the running system: 4xx, and nothing changes."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import httpx
import pytest

from .. import plain_http
from ..e2e.classes import DEMO, the_demo_is_ready
from ..e2e.support import Installation, eventually
from .audit import read
from .support import FOR_LONG, browser, hub, job_body, servers, submit

JSON = {"Content-Type": "application/json"}
JOB = job_body("1 + 1", devices=0)
DIGITS = "9" * 400
MIB = 1 << 20


def stored(site: Installation) -> tuple[list[str], list[str]]:
    """What there is of requests, in the database and on the disk."""
    ids = sorted(request.id for request in read(site.state).requests)
    return ids, sorted(path.name for path in (site.state / "outputs").iterdir())


def raw(site: Installation, method: str, path: str, content: bytes) -> httpx.Response:
    """To the service itself: what it answers, and not what a proxy makes of it."""
    headers = JSON | {"Authorization": f"token {site.token('student1')}"}
    url = f"http://127.0.0.1:{site.setting('service_port')}/services/carrel/api/v1{path}"
    return plain_http.request(method, url, headers=headers, content=content, timeout=90)


def peak_memory(process: Path) -> int:
    """Return the VmHWM of a folder in /proc, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
    assert found
    return int(found[1]) * 1024


def refused(answer: httpx.Response) -> None:
    """A client's error, in the form that every error has."""
    assert answer.is_client_error, (answer.status_code, answer.text[:200])
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "name", ["../x", "../../x.ipynb", "{x.__class__}", "/etc/x", "a/b", "..", "", "x\n.ipynb"]
)
def test_case_27_names_that_lead_elsewhere_are_refused(desk: Installation, name: str) -> None:
    before = stored(desk)
    bodies = [JOB | {"notebook": JOB["notebook"] | {"name": name}}]
    if name:  # an empty output name means: as the notebook
        bodies.append(JOB | {"output": name})
    for body in bodies:
        answer = desk.api("POST", "/requests", user="student1", json=body)
        refused(answer)
        assert answer.status_code in {400, 422}
    assert stored(desk) == before


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "half an object": b'{"group": "cs101"',
    "bad UTF-8": b'{"group": "\xff\xfe"}',
    "an overlong encoding": b'{"group": "\xc0\xaf"}',
    "half a surrogate pair": b'{"group": "\\ud800"}',
    "null": b"null",
    "a list": b"[]",
    "a deep list": b"[" * 50_000,
    "devices as text": b'{"devices": "1", "group": "cs101"}',
    "99 devices": b'{"devices": 99, "group": "cs101"}',
    "negative devices": b'{"devices": -1, "group": "cs101"}',
    "400 digits of devices": f'{{"devices": {DIGITS}, "group": "cs101"}}'.encode(),
    "a number beyond floats": b'{"hours": 1e999, "group": "cs101"}',
    "400 digits of hours": f'{{"hours": {DIGITS}, "group": "cs101"}}'.encode(),
    "very many hours": b'{"hours": 1e300, "group": "cs101"}',
    "no number": b'{"hours": NaN, "group": "cs101"}',
    "no time": b'{"hours": 0, "group": "cs101"}',
    "negative time": b'{"hours": -1, "group": "cs101"}',
    "an extra key": b'{"devices": 0, "group": "cs101", "image": "evil"}',
    "an unknown group": b'{"devices": 0, "group": "nobody"}',
    "a group with a zero byte": b'{"devices": 0, "group": "cs\\u0000101"}',
}


@pytest.mark.parametrize("case", BODIES)
def test_case_29_no_body_makes_the_service_fail(desk: Installation, case: str) -> None:
    before = stored(desk)
    for path in ("/sessions/-", "/requests"):
        refused(raw(desk, "POST", path, BODIES[case]))
    assert stored(desk) == before


JOB_CHANGES: dict[str, dict[str, Any]] = {
    "devices beyond 64 bits": {"devices": 1 << 70},
    "seconds beyond 64 bits": {"seconds": 1 << 70},
    "no time": {"seconds": 0},
    "negative time": {"seconds": -5},
    "no notebook": {"notebook": {"name": "x.ipynb", "content": "hello"}},
    "a list as notebook": {"notebook": {"name": "x.ipynb", "content": "[]"}},
    "an unknown kernel": {"kernel": "brainfog"},
    "parameters of a notebook that has none": {"parameters": {"lr": 1}},
    "another kind": {"kind": "grading"},
}


@pytest.mark.parametrize("case", JOB_CHANGES)
def test_case_29_no_job_makes_the_service_fail(desk: Installation, case: str) -> None:
    before = stored(desk)
    refused(desk.api("POST", "/requests", user="student1", json=JOB | JOB_CHANGES[case]))
    assert stored(desk) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sessions/..%2f..%2fetc"),
        ("POST", "/sessions/%ff%fe"),
        ("POST", "/sessions/%00"),
        ("POST", "/sessions/" + "a" * 300),
        ("DELETE", "/sessions/nothing-here"),
        ("DELETE", "/requests/%ff"),
        ("GET", "/requests/j-nothing"),
        ("GET", "/requests/..%2f..%2fcarrel.db/output"),
        ("GET", "/requests?limit=" + DIGITS),
        ("GET", "/requests?state=%ff"),
        ("GET", "/requests?kind=party"),
        ("PUT", "/sessions"),
        ("POST", "/leases/j-nothing.1/started"),
    ],
)
def test_case_29_no_address_makes_the_service_fail(
    desk: Installation, method: str, path: str
) -> None:
    before = stored(desk)
    refused(raw(desk, method, path, b'{"devices": 0, "hours": 1, "group": "cs101"}'))
    assert stored(desk) == before


@pytest.mark.parametrize("method", [ZIP_BZIP2, ZIP_LZMA, ZIP_DEFLATED])
def test_no_archive_takes_the_memory_of_the_service(desk: Installation, method: int) -> None:
    the_demo_is_ready(desk)
    packed = io.BytesIO()
    with ZipFile(packed, "w", method) as archive:
        archive.writestr("unit1.ipynb", bytes(256 * MIB))
    body = {"archive": base64.b64encode(packed.getvalue()).decode()}
    service = Path(f"/proc/{desk.pid_of('service')}")
    # From now on VmHWM is the most memory since this moment.
    (service / "clear_refs").write_text("5")
    before = peak_memory(service)
    place = f"/courses/{DEMO}/assignments/unit1-arrays-and-cost/submissions"
    refused(raw(desk, "POST", place, json.dumps(body).encode()))
    assert peak_memory(service) - before < 100 * MIB


def test_case_29_no_body_takes_the_hub_down(desk: Installation) -> None:
    before = stored(desk)
    # Without options the hub starts a server with the usual ones, and that is no mistake.
    meant = {"nothing", "null"}
    for body in (body for case, body in BODIES.items() if case not in meant):
        content = b'{"user_options": ' + body + b"}"
        # Some broken bytes get JupyterHub's own bare 500.
        hub(desk, "POST", "users/student3/server", content=content, headers=JSON)
        eventually(lambda: servers(desk, "student3") == {}, "the start is over")
        assert stored(desk) == before, body
    assert hub(desk, "GET", "").is_success


def test_case_31_cross_site_requests_are_forbidden(desk: Installation) -> None:
    job = submit(desk, "student1", FOR_LONG)
    desk.wait_for(job, "running", user="student1")
    before = stored(desk)
    with browser(desk, "student1") as person:
        page = person.get("/services/carrel/").text
        found = re.search(r'name="csrf" value="([^"]+)"', page)
        assert found
        token = found[1]
        evil = {"Origin": "http://evil.example", "X-Carrel-CSRF": token}
        form = {"devices": "1", "hours": "1", "group": "cs101", "server_name": "", "csrf": token}
        answers = [
            person.post("/services/carrel/sessions", data=form, headers=evil),
            person.post(f"/services/carrel/requests/{job}/cancel", data=form, headers=evil),
            person.post("/services/carrel/logout", data=form, headers=evil),
            person.post(
                "/services/carrel/api/v1/requests",
                content=json.dumps(JOB).encode(),
                headers=evil | {"Content-Type": "text/plain"},
            ),
            person.post("/services/carrel/api/v1/requests", json=JOB, headers=evil),
            person.post("/services/carrel/api/v1/sessions/-", json={"devices": 1}, headers=evil),
            person.delete(f"/services/carrel/api/v1/requests/{job}", headers=evil),
            person.post("/hub/api/users/student1/server", json={}, headers=evil),
        ]
        assert [answer.status_code for answer in answers] == [403] * len(answers)
        assert stored(desk) == before
        assert desk.request(job, user="student1")["state"] == "running"
        assert person.get("/services/carrel/").url.path == "/services/carrel/", "still signed in"

        # The same from Carrel's own page, to show that nothing but the origin was wrong.
        ours = {"Origin": desk.url, "X-Carrel-CSRF": token}
        answer = person.delete(f"/services/carrel/api/v1/requests/{job}", headers=ours)
        assert answer.status_code == 200, answer.text
    desk.wait_for(job, "cancelled", user="student1")
