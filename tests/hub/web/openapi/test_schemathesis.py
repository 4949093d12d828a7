"""Responses to any input conform to the API's description, and are never a 5xx."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from carrel.hub.config.settings import Settings
from carrel.hub.controller.loop import Loop
from carrel.hub.requests.jobs import JobService
from carrel.hub.runtime.context import Context
from carrel.hub.store.sql.store import SqlStore
from carrel.hub.transparency.log_store import SqlLogStore
from carrel.hub.transparency.service import TransparencyLog
from carrel.hub.web import TokenHolder, build_app
from carrel.spawners.fake import FakeBackend

from ....property_settings import examples
from ....stores import new_courses, new_store
from ...doubles import STUDENT1, STUDENT2, Clock, FakeHub, build, no_time
from ...requests.samples import job
from ...world import World
from ..fakes import ALL_SCOPES, API, HUB_TOKEN, FakeSignIn
from ..fakes import World as Fakes

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
CALLERS = {
    "a student": {"Authorization": "token student1-all"},
    "nobody": {},
    "somebody unknown": {"Authorization": "token who-knows"},
}
EXAMPLES = examples(6, 50, derandomize=True, suppress_health_check=list(HealthCheck))


class Site:
    """The application over a real context, with one request in each state."""

    def __init__(self, folder: Path) -> None:
        clock, hub = Clock(), FakeHub()
        backend = FakeBackend(clock=clock)
        self.context: Context = build(new_store(), backend, hub, clock, folder)
        self.ended = self._ended(backend, hub, clock)
        self.waiting = JobService(self.context).submit(STUDENT1, job()).id
        self.somebody_elses = JobService(self.context).submit(STUDENT2, job()).id
        sign_in = FakeSignIn()
        sign_in.people["student1-all"] = TokenHolder(identity=STUDENT1, scopes=ALL_SCOPES)
        self.app: FastAPI = build_app(
            self.context,
            sign_in,
            Settings(calls_per_second=0.0),
            courses=new_courses(self.context),
            hub_token=HUB_TOKEN,
            crypt_key="signs",
            log=TransparencyLog(
                store=SqlLogStore(cast(SqlStore, self.context.store).transactions),
                key=self.context.signing_key,
                site="http://127.0.0.1/",
                clock=clock,
            ),
        )

    def _ended(self, backend: FakeBackend, hub: FakeHub, clock: Clock) -> str:
        world = World(
            self.context,
            backend,
            hub,
            clock,
            Loop(self.context, node="local", decision_clock=no_time),
        )
        made = world.running_job()
        folder = self.context.files.attempt_folder(made.id, 1)
        (folder / "files").mkdir()
        (folder / "files" / "loss.txt").write_text("0.1")
        (folder / "output.ipynb").write_text("{}")
        (folder / "log.txt").write_text("hello")
        world.report(made, "ended", code="succeeded", message="All cells ran.")
        backend.end(world.lease(made))
        world.settle(2)
        world.loop.close()
        assert world.see(made).state == "succeeded"
        return made.id


@pytest.fixture(scope="module")
def described(site: Site) -> dict[str, Any]:
    return operations(site.app)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


def operations(app: FastAPI) -> dict[str, Any]:
    schema = schemathesis.openapi.from_asgi(f"{API}/openapi.json", app)
    found = [operation.ok() for operation in schema.get_all_operations()]
    # The stream of all that a user may see has no end.
    return {each.label: each for each in found if not each.path.endswith("/api/v1/events")}


@pytest.mark.hypothesis
@pytest.mark.parametrize("label", operations(Fakes().app))
def test_every_response_conforms_to_the_description(
    label: str, described: dict[str, Any], site: Site
) -> None:
    operation = described[label]

    @EXAMPLES
    @given(case=operation.as_strategy())
    def answers(case: schemathesis.Case) -> None:
        aim(case, site)
        for headers in CALLERS.values():
            case.call_and_validate(headers=headers, checks=CHECKS)

    answers()


def aim(case: schemathesis.Case, site: Site) -> None:
    """Replace half of the generated ids by those of existing requests."""
    given = case.path_parameters.get("request_id")
    if given is None:
        return
    # The stream of an unfinished request does not end.
    choices = [site.ended, site.somebody_elses, None, None]
    if not case.path.endswith("/events"):
        choices.append(site.waiting)
    chosen = choices[len(str(given)) % len(choices)]
    if chosen is not None:
        case.path_parameters["request_id"] = chosen
