"""Pages over a real service that tests cycle."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
from fastapi import FastAPI

from carrel.hub.config.settings import Settings
from carrel.hub.records.identity import Identity
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.schemas import RequestOut, SessionIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.hub.web import TokenHolder, build_app
from carrel.hub.web.dependencies.context import WebContext
from carrel.hub.web.security.access import SESSION_COOKIE, SESSION_PURPOSE
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE

from ....stores import new_courses
from ...doubles import STUDENT1, STUDENT2
from ...world import World
from ..fakes import HUB_TOKEN, PREFIX, Client, FakeSignIn

BOSS = Identity(name="boss", admin=True)


FORM = {"group": "cs101", "devices": "1", "hours": "1", "server_name": ""}


@dataclass
class Site:
    """A real service in memory behind its web side: one device, and two students."""

    world: World
    app: FastAPI

    @property
    def web(self) -> WebContext:
        web: WebContext = self.app.state.web
        return web

    def browser(self, who: Identity = STUDENT1, *, forged: bool = False) -> Client:
        cookie = self.web.signer.wrap(SESSION_PURPOSE, who.name)
        token = "guessed" if forged else self.web.caller_access.csrf.issue(cookie)
        headers = {"X-Carrel-CSRF": token, "Sec-Fetch-Site": "same-origin"}
        return Client(self.app, {"Cookie": f"{SESSION_COOKIE}={cookie}", **headers})

    def post(self, path: str, who: Identity = STUDENT1, **fields: str) -> httpx.Response:
        return self.browser(who).post(f"{PREFIX}{path}", data=fields)

    def desk(self) -> str:
        return self.browser().get(PREFIX).text

    def session(self, server: str, who: Identity = STUDENT1) -> RequestOut:
        found = self.world.context.store.live_session(who.name, server)
        assert found is not None, server
        return RequestQueries(self.world.context).request(who, found.id)

    def somebody_else_runs(self) -> RequestOut:
        """Start a job of student2 on the only device."""
        options = SessionIn(devices=1, hours=1.0, group="cs101")
        made = SessionLifecycle(self.world.context).start(STUDENT2, "", options)
        self.world.settle()
        self.world.runs(made)
        return made


def site_over(world: World) -> Site:
    sign_in = FakeSignIn()
    for who in (STUDENT1, STUDENT2, BOSS):
        sign_in.people[who.name] = TokenHolder(identity=who, scopes=frozenset({ACCESS_SCOPE}))
    app = build_app(
        world.context,
        sign_in,
        Settings(),
        courses=new_courses(world.context),
        hub_token=HUB_TOKEN,
        crypt_key="signs",
        clock=world.clock,
    )
    world.settle()
    return Site(world, app)
