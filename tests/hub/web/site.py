"""The application over a real service, with clients for its users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.store import Accounts
from carrel.hub.app import build_notifications
from carrel.hub.attempts.compile_caches import OwnerCompileCaches
from carrel.hub.config.notification_table import NotificationTable
from carrel.hub.config.settings import Settings
from carrel.hub.notifications.address_seal import AddressSeal
from carrel.hub.open_links.tickets import OpenLinks
from carrel.hub.records.identity import Identity
from carrel.hub.runtime.context import Context
from carrel.hub.secrets.cipher import Cipher
from carrel.hub.store import SqlStore
from carrel.hub.web import TokenHolder, build_app
from carrel.hub.web.security.hub_oauth import ACCESS_SCOPE
from carrel.hub.web.security.signer import Signer
from carrel.spawners.fake import FakeBackend

from ...stores import new_courses, new_store
from ..doubles import ADMIN, STRANGER, STUDENT1, TEACHER, Clock, FakeHub, build, device
from .fakes import ALL_SCOPES, HUB_TOKEN, Client, FakeSignIn, World

GROUP = {"max_devices": 1, "max_devices_per_user": 1}
COMPILE_CACHE_BYTES = 1 << 20


@dataclass
class Site:
    """A real service in memory behind its web side."""

    world: World
    context: Context
    accounts: Accounts
    clock: Clock

    def api(self, who: Identity = ADMIN) -> Client:
        return self.world.program(who.name)

    def page(self, who: Identity = ADMIN) -> Client:
        return self.world.own_page(f"{who.name}-oauth")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with made_site(tmp_path) as made:
        yield made


@contextmanager
def made_site(
    folder: Path,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    table: NotificationTable = NotificationTable(),  # noqa: B008 - frozen
    allowed_links: Sequence[str] = (),
    compile_cache_bytes: int = COMPILE_CACHE_BYTES,
) -> Iterator[Site]:
    """A service with two devices, an administrator, a teacher and a student, in a folder."""
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    context = build(new_store(), backend, FakeHub(), clock, folder)
    caches = OwnerCompileCaches(folder / "compile-caches", compile_cache_bytes)
    context = replace(context, compile_caches=caches)
    accounts = Accounts(folder / "accounts.db", cost=Cost(n=2))
    accounts.add("admin", "a long password", admin=True)
    world = World()
    world.sign_in = FakeSignIn()
    for who in (ADMIN, STUDENT1, TEACHER, STRANGER):
        world.sign_in.people[who.name] = TokenHolder(identity=who, scopes=ALL_SCOPES)
        scopes = frozenset({ACCESS_SCOPE})
        world.sign_in.people[f"{who.name}-oauth"] = TokenHolder(identity=who, scopes=scopes)
    notifications, _ = build_notifications(
        context,
        cast(SqlStore, context.store),
        table=table,
        settings=settings,
        signer=Signer("signs"),
        seal=AddressSeal(Cipher(folder / "encryption.keys")),
    )
    world.app = build_app(
        context,
        world.sign_in,
        settings,
        courses=new_courses(context, accounts, root=folder / "courses"),
        hub_token=HUB_TOKEN,
        crypt_key="signs",
        clock=clock,
        accounts=accounts,
        notifications=notifications,
        open_links=OpenLinks(
            allowed=allowed_links, signer=Signer("signs"), base=settings.public_service_url
        ),
    )
    yield Site(world, context, accounts, clock)
    accounts.close()
