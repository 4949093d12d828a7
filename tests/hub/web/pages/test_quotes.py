"""The number of queries of a page does not depend on the number of requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from carrel.hub.config.settings import Settings
from carrel.hub.records.identity import Identity
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle
from carrel.hub.web import TokenHolder, build_app
from carrel.hub.web.security.access import SESSION_COOKIE, SESSION_PURPOSE
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE
from carrel.spawners.fake import FakeBackend

from ....contracts.store_kit import PROCESS
from ....stores import new_courses
from ...doubles import STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from ...requests.samples import job
from ..fakes import PREFIX, Client, FakeSignIn

MOST = {
    "": 23,
    "desk/live": 20,
    "requests": 8,
    "usage": 17,
    "usage?by=group": 19,
    "usage?by=term": 20,
    "course/cs101": 18,
}
"""At most so many queries, up to three of them to the tables of courses."""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    store = open_store(tmp_path / "carrel.db")
    yield build(store, FakeBackend(), FakeHub(), Clock(), tmp_path)
    store.close()


def browser(context: Context, who: Identity) -> Client:
    sign_in = FakeSignIn()
    sign_in.people[who.name] = TokenHolder(identity=who, scopes=frozenset({ACCESS_SCOPE}))
    app = build_app(
        context,
        sign_in,
        Settings(),
        courses=new_courses(context),
        hub_token="of the hub",
        crypt_key="signs",
        clock=context.clock,
    )
    cookie = app.state.web.signer.wrap(SESSION_PURPOSE, who.name)
    return Client(app, {"Cookie": f"{SESSION_COOKIE}={cookie}"})


def fill(context: Context, *, waiting: int) -> None:
    """Run one job on one of two devices, and queue jobs of two students for both."""
    store, clock = context.store, context.clock
    assert isinstance(clock, Clock)
    now = clock()
    made = JobService(context).submit(STUDENT1, job())
    start = Start(request_id=made.id, devices=("SIM-0",))
    (lease,) = store.grant([start], now=now, lease_seconds=60)
    store.launch(lease.id, now=now)
    store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=now)
    for number in range(waiting):
        clock.now += 1
        JobService(context).submit((STUDENT1, STUDENT2)[number % 2], job(devices=2))
    context.plan_cache.publish(decide(store.snapshot(clock()), clock()))


@contextmanager
def questions() -> Iterator[list[str]]:
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if not statement.startswith("BEGIN"):
            asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("page", MOST)
def test_a_page_asks_as_often_for_many_requests_as_for_few(context: Context, page: str) -> None:
    who = TEACHER if page.startswith("course") else STUDENT1
    fill(context, waiting=30)
    client = browser(context, who)
    # The first page also reads the progress of the running job, which is cached.
    assert client.get(PREFIX + page).status_code == 200
    with questions() as asked:
        answer = client.get(PREFIX + page)
    assert answer.status_code == 200
    assert len(asked) <= MOST[page], "\n".join(asked)


def test_the_desk_announces_the_next_queued_request(context: Context) -> None:
    fill(context, waiting=60)
    page = browser(context, STUDENT1).get(PREFIX).text
    first = RequestQueries(context).next_in_line(STUDENT1)
    assert first is not None
    assert first.wait is not None
    assert (first.owner, first.wait.place) == ("student1", 2), "users without devices come first"
    assert first.wait.sentence in page
    assert f'id="name-{first.id}"' not in page, "the list shows the newest alone"
    assert RequestQueries(context).next_in_line(TEACHER) is None
