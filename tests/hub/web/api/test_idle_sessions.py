"""The warning of an idle session on pages and in the API, and the button that keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI

from carrel.hub.config.settings import Settings
from carrel.hub.controller.idle_culling import IdleCulling
from carrel.hub.records.identity import Identity
from carrel.hub.web import TokenHolder, build_app
from carrel.hub.web.dependencies.context import WebContext
from carrel.hub.web.security.access import SESSION_COOKIE, SESSION_PURPOSE
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE
from carrel.spawners.fake import FakeBackend

from ....stores import new_courses, new_store
from ...controller.idle_room import COUNTDOWN, Room
from ...doubles import ADMIN, STUDENT1, STUDENT2, Clock, FakeHub, build, device
from ..fakes import ALL_SCOPES, API, HUB_TOKEN, PREFIX, Client, FakeSignIn

QUIET = {"count": 1, "running": 0}


@dataclass
class Site:
    """A real service in memory behind its web side, with one session on one device."""

    room: Room
    web: WebContext
    app: FastAPI

    @property
    def path(self) -> str:
        return f"requests/{self.room.session}"

    def api(self, who: Identity = STUDENT1) -> Client:
        return Client(self.app, {"Authorization": f"token {who.name}"})

    def page(self, *, forged: bool = False) -> Client:
        cookie = self.web.signer.wrap(SESSION_PURPOSE, "oauth")
        token = "guessed" if forged else self.web.caller_access.csrf.issue(cookie)
        return Client(
            self.app,
            {
                "Cookie": f"{SESSION_COOKIE}={cookie}",
                "X-Carrel-CSRF": token,
                "Sec-Fetch-Site": "same-origin",
            },
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    context = build(new_store(), backend, FakeHub(), clock, tmp_path)
    room = Room(context, backend, clock, IdleCulling(context, COUNTDOWN))
    sign_in = FakeSignIn()
    for who in (STUDENT1, STUDENT2, ADMIN):
        sign_in.people[who.name] = TokenHolder(identity=who, scopes=ALL_SCOPES)
    sign_in.people["oauth"] = TokenHolder(identity=STUDENT1, scopes=frozenset({ACCESS_SCOPE}))
    app = build_app(
        context,
        sign_in,
        Settings(idle_countdown_seconds=COUNTDOWN),
        courses=new_courses(context),
        hub_token=HUB_TOKEN,
        crypt_key="signs",
        clock=clock,
    )
    room.culling.reconcile()
    room.start()
    return Site(room=room, web=app.state.web, app=app)


def test_a_session_reports_its_kernels_and_gets_its_warning(site: Site) -> None:
    calm = site.api().post(f"{API}/{site.path}/kernels", json=QUIET)
    assert calm.json() == {
        "state": "running",
        "warning": None,
        "held": None,
        "shown": "",
        "again_seconds": 15.0,
        "follow": [site.room.session],
    }
    warning = site.room.pass_(1900).warning
    assert warning is not None
    told = site.api().post(f"{API}/{site.path}/kernels", json=QUIET).json()
    assert told["warning"] == warning.model_dump()


@pytest.mark.parametrize(
    "body", [{}, {"count": -1, "running": 0}, {"count": 1, "running": 0, "cell_seconds_ago": -1}]
)
def test_reports_about_kernels_are_validated(site: Site, body: dict[str, object]) -> None:
    assert site.api().post(f"{API}/{site.path}/kernels", json=body).status_code == 400


def test_only_the_owner_keeps_a_session_and_only_once(site: Site) -> None:
    site.room.pass_(1900)
    keep = f"{API}/{site.path}/keep"
    assert site.api(STUDENT2).post(keep).status_code == 404
    assert site.api(ADMIN).post(keep).status_code == 403
    kept = site.api().post(keep)
    assert (kept.status_code, kept.json()["warning"]) == (200, None)
    assert "not about to be stopped" in site.api().post(keep).json()["detail"]
    site.room.pass_(1900)
    again = site.api().post(keep)
    assert again.status_code == 409
    assert "running a cell" in again.json()["accepted"]


@pytest.mark.parametrize("page", ["", "desk/live", "requests/{}"])
def test_pages_show_the_countdown_the_evidence_and_a_button(site: Site, page: str) -> None:
    path = PREFIX + page.format(site.room.session)
    assert "idle-warning" not in site.page().get(path).text
    site.room.pass_(1900)
    shown = site.page().get(path).text
    assert "This session has been idle for 30 min and holds 1 device." in shown
    assert "<li>Its kernel ran no cell.</li>" in shown
    assert 'data-show="left"' in shown
    assert f'action="{PREFIX}{site.path}/keep"' in shown


def test_the_button_keeps_a_session_once(site: Site) -> None:
    site.room.pass_(1900)
    assert site.page(forged=True).post(f"{PREFIX}{site.path}/keep").status_code == 403
    answer = site.page().post(f"{PREFIX}{site.path}/keep")
    assert (answer.status_code, answer.headers["location"]) == (303, PREFIX)
    assert "idle-warning" not in site.page().get(PREFIX).text
    site.room.pass_(1900)
    shown = site.page().get(PREFIX).text
    assert "already kept once" in shown
    assert f"{site.path}/keep" not in shown
