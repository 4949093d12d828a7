"""A user who is removed leaves no session behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.store import Accounts
from carrel.hub.attempts.compile_cache_side import NEW
from carrel.hub.attempts.compile_caches import OwnerCompileCaches
from carrel.hub.groups.users import Users
from carrel.hub.interfaces.jupyterhub import HubServer, HubUser
from carrel.hub.schemas import RequestOut, SessionIn
from carrel.hub.sessions.lifecycle import SessionLifecycle

from ..doubles import STUDENT1, FakeHub
from ..world import World


class BusyHub(FakeHub):
    """A hub that refuses to delete a user with a server that is starting."""

    pending = 0
    """For how many more questions it is starting."""

    def user(self, name: str) -> HubUser:
        server = HubServer(user=name, name="", ready=False, pending="spawn", url="")
        found = super().user(name)
        if self.pending <= 0:
            return found
        self.pending -= 1
        return replace(found, servers={"": server})

    def remove_user(self, name: str) -> None:
        assert self.pending <= 0, "500: its server is starting"
        self.people.discard(name)


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    made = Accounts(tmp_path / "accounts.db", cost=Cost(n=2))
    made.add("student1", "a long password", admin=False)
    yield made
    made.close()


def test_queued_and_starting_sessions_are_cancelled_first(
    tmp_path: Path, accounts: Accounts
) -> None:
    world = World.over(tmp_path)
    session = SessionLifecycle(world.context).start(STUDENT1, "", SessionIn(devices=1, hours=1.0))
    hub = BusyHub()
    hub.pending = 2
    folder = tmp_path / "compile-caches"
    for name in ("student1", "student2"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.cache").write_bytes(b"x")
    caches = OwnerCompileCaches(folder, most_bytes=0)
    users = Users(world.context.store, world.clock, hub, accounts, caches)
    users.remove("student1", who="admin")
    assert [path.name for path in folder.iterdir()] == ["student2"]
    ended = world.see(session)
    assert (ended.state, ended.cause and ended.cause.message) == (
        "cancelled",
        "Cancelled: the account was removed by admin.",
    )
    assert "student1" not in hub.people
    assert accounts.find("student1") is None
    world.loop.close()


def leave_compiled(world: World, made: RequestOut) -> None:
    """Let a job of student1 leave what it has compiled, as its runner does."""
    lease = world.see(made).lease
    assert lease is not None
    content = b"code"
    header = {
        "machine": "m",
        "graphs": 1,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "request": "",
    }
    folder = world.context.files.attempt_folder(made.id, lease.epoch)
    (folder / NEW).write_bytes(json.dumps(header).encode() + b"\n" + content)
    world.report(made, "compile_cache")


def test_a_job_that_ends_after_the_removal_of_its_owner_keeps_no_compiled_code(
    tmp_path: Path, accounts: Accounts
) -> None:
    world = World.over(tmp_path)
    caches = OwnerCompileCaches(tmp_path / "compile-caches", 1 << 20)
    world.context = replace(world.context, compile_caches=caches)
    world.restart()
    users = Users(world.context.store, world.clock, FakeHub(), accounts, caches)
    before, running = world.running_job(devices=0), world.running_job(devices=0)
    leave_compiled(world, before)
    assert len(caches.kept("student1")) == 1
    world.clock.pass_(1)
    users.remove("student1", who="admin")
    leave_compiled(world, running)
    assert [*caches.root.iterdir()] == []

    # The same name for another person: only jobs since then keep something.
    users.add("student1", "a long password", admin=False, groups=(), who="admin")
    world.clock.pass_(1)
    leave_compiled(world, world.running_job(devices=0))
    assert len(caches.kept("student1")) == 1
    world.loop.close()


@pytest.mark.parametrize("step", ["remove_user", "remove"])  # before and after the entry
def test_what_a_job_keeps_while_its_owner_is_removed_goes_with_the_account(
    step: str, tmp_path: Path, accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.over(tmp_path)
    caches = OwnerCompileCaches(tmp_path / "compile-caches", 1 << 20)
    world.context = replace(world.context, compile_caches=caches)
    world.restart()
    hub = FakeHub()
    users = Users(world.context.store, world.clock, hub, accounts, caches)
    running = world.running_job(devices=0)
    changed = hub if step == "remove_user" else accounts
    remove = getattr(changed, step)

    def remove_meanwhile(name: str) -> None:
        leave_compiled(world, running)
        remove(name)

    monkeypatch.setattr(changed, step, remove_meanwhile)
    users.remove("student1", who="admin")
    assert not any(caches.root.glob("*"))
    world.loop.close()


def test_a_removal_that_was_interrupted_can_be_repeated(
    tmp_path: Path, accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, hub = World.over(tmp_path), BusyHub()
    users = Users(world.context.store, world.clock, hub, accounts)
    monkeypatch.setattr(accounts, "remove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        users.remove("student1", who="admin")
    monkeypatch.undo()
    assert accounts.find("student1") is not None
    users.remove("student1", who="admin")
    assert accounts.find("student1") is None
    world.loop.close()


def interrupted(_: str) -> None:
    raise KeyboardInterrupt
