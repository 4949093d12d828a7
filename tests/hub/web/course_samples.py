"""A course with an assignment, for tests of its pages and calls."""

from __future__ import annotations

import base64

import pytest

from ...courses.notebook_samples import SOURCE
from ..doubles import TEACHER
from .fakes import API
from .site import Site

COURSE = f"{API}/courses/cs101"


PS1 = f"{COURSE}/assignments/ps1"


def files(**contents: bytes) -> list[dict[str, str]]:
    return [
        {"name": name.replace("_", "."), "content": base64.b64encode(content).decode()}
        for name, content in contents.items()
    ]


@pytest.fixture
def course(site: Site) -> Site:
    body = {"name": "cs101", "students": "student,section\nstudent1,blue\nstudent2,\n"}
    assert site.api().post(f"{API}/courses", json=body).status_code == 201
    release = {"files": files(ps1_ipynb=SOURCE), "due": "2027-02-01 18:00 Europe/Berlin"}
    site.clock.now = 1_800_000_000.0
    answer = site.api(TEACHER).post(f"{PS1}/release", json=release)
    assert answer.status_code == 200, answer.text
    return site
