"""The services of courses in memory, with cs101, its members and short calls for tests."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from pathlib import Path

from carrel.courses.sandbox.interface import SandboxFactory
from carrel.courses.services import CourseServices
from carrel.hub.accounts.store import Accounts
from carrel.hub.files.safe_fs import Owner
from carrel.hub.interfaces.job_reuse import CompileCaches
from carrel.hub.records.audit import ChangeFilter
from carrel.hub.records.identity import Identity
from carrel.hub.schemas.courses import CourseIn, FileIn, ReceiptOut, ReleaseIn, SubmitIn
from carrel.spawners.fake import FakeBackend

from ..hub.doubles import ADMIN, STUDENT1, TEACHER, Clock, FakeHub, build
from ..stores import TemporaryBlobs, gradebooks_in, new_course_store, new_store
from .notebook_samples import SOURCE

START = 1_800_000_000.0
"""2027-01-15 08:00 UTC."""
DUE = "2027-01-20 18:00 Europe/Berlin"
DUE_AT = START + 5 * 86400 + 9 * 3600
GRADER = Identity(name="gus")


@dataclass
class CourseSite:
    """The services of courses, and the fakes around them."""

    services: CourseServices
    clock: Clock
    hub: FakeHub
    backend: FakeBackend

    def create(self, **more: object) -> None:
        given = {"name": "cs101", "teachers": ["teacher"]} | more
        self.services.administration.create(ADMIN, CourseIn.model_validate(given))

    def release(self, name: str = "ps1", **more: object) -> None:
        given = {"files": files({"ps1.ipynb": SOURCE}), "due": DUE, "late": "24h:-10%"} | more
        self.services.assignments.release(TEACHER, "cs101", name, ReleaseIn.model_validate(given))

    def submit(self, content: str, who: Identity = STUDENT1, name: str = "ps1") -> ReceiptOut:
        # Most tests need no notebook that can be read.
        body = SubmitIn(files=files({"ps1.ipynb": content.encode()}), incomplete=True)
        return self.services.submissions.submit(who, "cs101", name, body)

    def lines(self) -> list[tuple[str, str, str]]:
        found = self.services.access.context.store.changes(ChangeFilter())
        return [(line.who, str(line.action), line.target) for line in reversed(found)]


def build_site(
    folder: Path,
    *,
    sandboxes: SandboxFactory | None = None,
    root: Path | None = None,
    owner: Owner | None = None,
    accounts: Accounts | None = None,
    prefixes: Path | None = None,
    compile_caches: CompileCaches | None = None,
) -> CourseSite:
    clock, hub, backend = Clock(START), FakeHub(), FakeBackend()
    hub.people.add("gus")
    context = build(new_store(), backend, hub, clock, folder)
    if compile_caches is not None:
        context = replace(context, compile_caches=compile_caches)
    services = CourseServices.build(
        context,
        new_course_store(context.store),
        TemporaryBlobs(),
        sandboxes=sandboxes,
        root=root,
        owner=owner,
        accounts=accounts,
        gradebooks=None if root is None else gradebooks_in(root),
        prefixes=prefixes,
    )
    return CourseSite(services, clock, hub, backend)


def files(contents: dict[str, bytes]) -> list[FileIn]:
    return [
        FileIn(name=name, content=base64.b64encode(content).decode())
        for name, content in contents.items()
    ]
