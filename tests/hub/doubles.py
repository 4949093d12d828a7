"""Test doubles for the surroundings of the service: JupyterHub, a clock, folders for files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from carrel.hub.config.settings import CLAIM_SECONDS, PREEMPTION_GRACE_SECONDS
from carrel.hub.errors import NotFound, Unavailable
from carrel.hub.files.home_folders import HomeFolders
from carrel.hub.files.local import LocalFiles
from carrel.hub.interfaces.backend import Backend
from carrel.hub.interfaces.clock import Instant
from carrel.hub.interfaces.jupyterhub import HubServer, HubUser
from carrel.hub.interfaces.store import Store
from carrel.hub.provenance.signature import SigningKey
from carrel.hub.records.identity import Identity
from carrel.hub.records.json_value import Json
from carrel.hub.runtime.context import Context
from carrel.hub.runtime.progress_cache import ProgressCache
from carrel.hub.scheduling.model.snapshot import Device, Group
from carrel.hub.secrets.cipher import Cipher

STUDENT1 = Identity(name="student1")
STUDENT2 = Identity(name="student2")
TEACHER = Identity(name="teacher")
ADMIN = Identity(name="admin", admin=True)
STRANGER = Identity(name="stranger")


def no_time() -> Instant:
    """A clock by which no decision takes time, so that every cycle decides about the whole queue.

    By the real one, a decision on a busy machine is followed by cycles in which new requests have
    no position yet.
    """
    return Instant(0.0)


@dataclass
class FakeHub:
    """A hub with given users and groups that records its calls."""

    members: dict[str, set[str]] = field(
        default_factory=lambda: {"cs101": {"student1", "student2", "teacher"}}
    )
    away: bool = False
    own_accounts: bool = True
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    options: dict[tuple[str, str], Mapping[str, Json]] = field(default_factory=dict)
    """The options of the last start of each server."""
    servers: dict[str, dict[str, HubServer]] = field(default_factory=dict)
    people: set[str] = field(
        default_factory=lambda: {"student1", "student2", "teacher", "admin", "stranger"}
    )

    def uses_accounts(self) -> bool:
        return self.own_accounts

    def user(self, name: str, *, for_page: bool = False) -> HubUser:
        self._answer()
        if name not in self.people:
            raise NotFound(f"no user {name}")
        groups = frozenset(group for group, names in self.members.items() if name in names)
        return HubUser(
            name=name, admin=name == "admin", groups=groups, servers=self.servers.get(name, {})
        )

    def users(self, *, within: float = 0.0) -> tuple[HubUser, ...]:
        return tuple(self.user(name) for name in sorted(self.people))

    def start_server(self, user: str, server: str, options: Mapping[str, Json]) -> None:
        self._answer()
        self.asked.append(("start", user, server))
        self.options[user, server] = options

    def stop_server(self, user: str, server: str) -> None:
        self._answer()
        self.asked.append(("stop", user, server))

    def add_user(self, name: str, *, admin: bool) -> None:
        self._answer()
        self.people.add(name)

    def add_users(self, names: tuple[str, ...]) -> None:
        self._answer()
        self.people.update(names)

    def remove_user(self, name: str) -> None:
        self.people.discard(name)

    def add_to_group(self, group: str, users: tuple[str, ...]) -> None:
        self._answer()
        self.members.setdefault(group, set()).update(users)

    def remove_from_group(self, group: str, users: tuple[str, ...]) -> None:
        self.members[group] -= set(users)

    def _answer(self) -> None:
        if self.away:
            raise Unavailable("JupyterHub does not answer.")


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Stopwatch:
    """A monotonic clock that tests advance."""

    now: float = 0.0

    def __call__(self) -> Instant:
        return Instant(self.now)

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def device(index: int, *, node: str = "local") -> Device:
    return Device(
        id=f"SIM-{index}",
        node=node,
        index=index,
        model="Simulated GPU",
        memory_bytes=16 << 30,
        simulated=True,
    )


def build(
    store: Store, backend: Backend, hub: FakeHub, clock: Clock, folder: Path, *, devices: int = 2
) -> Context:
    """Return a context with one group, cs101 (at most 4 devices, 2 per user, 8 h), and devices."""
    store.put_group(
        Group(name="cs101", max_devices=4, max_devices_per_user=2, max_seconds=8 * 3600)
    )
    store.set_teachers("cs101", ["teacher"])
    store.sync_devices("local", [device(index) for index in range(devices)])
    return Context(
        store=store,
        hub=hub,
        files=LocalFiles(
            homes=HomeFolders(root=folder / "homes", disks=folder / "disks"),
            outputs=folder / "outputs",
        ),
        backend=backend,
        clock=clock,
        progress=ProgressCache(store),
        claim_seconds=CLAIM_SECONDS,
        grace_seconds=PREEMPTION_GRACE_SECONDS,
        signing_key=SigningKey.generate(),
        cipher=Cipher(folder / "encryption.keys"),
    )
