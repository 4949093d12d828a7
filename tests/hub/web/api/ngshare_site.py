"""An ngshare service over a course, for nbgrader tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

import httpx

from carrel.courses.services import CourseServices
from carrel.hub.config.settings import Settings
from carrel.hub.records.identity import Identity
from carrel.hub.schemas.courses import CourseIn
from carrel.hub.web import TokenHolder, build_app
from carrel.spawners.fake import FakeBackend

from ....stores import TemporaryBlobs, new_course_store, new_store
from ...doubles import ADMIN, STRANGER, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from ..fakes import ALL_SCOPES, API, HUB_TOKEN, FakeSignIn, World

AT = f"{API}/exchange"


GRADER = Identity(name="gus")


ROSTER = "student,name,role\nstudent1,Ada King Lovelace,\nstudent2,Ben,\ngus,,grader\n"


FILES = {"ps1.ipynb": b"{}", "data/points.csv": b"1,2\n"}


class Site:
    """A service in memory with cs101; ``clock`` goes on by a second with every submission.

    ``url`` is where it listens, for those who let it.
    """

    url = ""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock(1_800_000_000.25)
        hub = FakeHub()
        hub.people.add("gus")
        context = build(new_store(), FakeBackend(), hub, self.clock, folder)
        self.blobs = TemporaryBlobs()
        self.store = new_course_store(context.store)
        self.services = CourseServices.build(context, self.store, self.blobs)
        self.services.administration.create(
            ADMIN, CourseIn(name="cs101", teachers=["teacher"], students=ROSTER)
        )
        self.world = World()
        self.world.sign_in = FakeSignIn()
        for who in (ADMIN, STUDENT1, STUDENT2, TEACHER, STRANGER, GRADER):
            self.world.sign_in.people[who.name] = TokenHolder(identity=who, scopes=ALL_SCOPES)
        self.world.app = build_app(
            *(context, self.world.sign_in, Settings()),
            hub_token=HUB_TOKEN,
            crypt_key="signs",
            clock=self.clock,
            courses=self.services,
        )

    def get(self, who: Identity, path: str, **query: str) -> httpx.Response:
        return self.world.program(who.name).get(f"{AT}/{path}", params=query)

    def post(self, who: Identity, path: str, **fields: str) -> httpx.Response:
        return self.world.program(who.name).post(f"{AT}/{path}", data={"user": who.name, **fields})

    def release(self, files: Mapping[str, bytes] = FILES, **fields: str) -> httpx.Response:
        return self.post(TEACHER, "assignment/cs101/ps1", files=tree(files), **fields)

    def submit(self, content: bytes, who: Identity = STUDENT1) -> str:
        self.clock.now += 1.0
        answer = self.post(who, "submission/cs101/ps1", files=tree({"ps1.ipynb": content}))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["timestamp"])


def tree(files: Mapping[str, bytes]) -> str:
    """Return files in the form of ngshare's client."""
    packed = [
        {"path": name, "content": base64.encodebytes(content).decode()}
        for name, content in files.items()
    ]
    return json.dumps(packed)
