"""A service that can be killed between any two of its actions, and whose slow actions wait.

Nothing depends on time or threads: the same steps always give the same history.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import ParamSpec, TypeVar, cast

from carrel.hub.errors import CarrelError, Unavailable
from carrel.hub.interfaces.backend import Backend, LaunchOrder
from carrel.hub.interfaces.store import Store
from carrel.hub.records.leases import Handle, LeaseState
from carrel.hub.records.requests import RequestFilter
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.states import State
from carrel.spawners.fake import FakeAttempt, FakeBackend

P = ParamSpec("P")
T = TypeVar("T")

ACTS = frozenset(
    {"submit", "grant", "launch", "apply", "apply_to_lease", "renew", "suspect", "charge"}
    | {"add_events", "put_mark", "sync_devices", "start", "stop", "request_checkpoint"}
    | {"withdraw_notice"}
)
"""Calls that change the store or the engine; a kill matters before and after each of them."""
EVERY = RequestFilter(limit=10_000)


class Killed(BaseException):
    """Stands for kill -9: no handler catches it."""


@dataclass(slots=True)
class Fuse:
    """The number of actions until the service is killed; None for no kill."""

    left: int | None = None

    def burn(self, name: str) -> None:
        if self.left == 0:
            raise Killed
        if self.left is not None and name in ACTS:
            self.left -= 1


class Mortal:
    """Forwards calls to ``real`` until the service is killed."""

    def __init__(self, real: object, fuse: Fuse) -> None:
        self._real, self._fuse = real, fuse

    def __getattr__(self, name: str) -> object:
        found = getattr(self._real, name)
        return partial(self._act, name, found) if callable(found) else found

    def _act(self, name: str, act: Callable[..., object], *words: object, **more: object) -> object:
        self._fuse.burn(name)
        return act(*words, **more)


def mortal(context: Context, fuse: Fuse) -> Context:
    """Return the context with a store and a backend that fail once the service is killed."""
    return replace(
        context,
        store=cast(Store, Mortal(context.store, fuse)),
        backend=cast(Backend, Mortal(context.backend, fuse)),
    )


class ManualExecutor(Executor):
    """Replaces the threads of the loop: an action runs when the test calls ``work``."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, action: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = action(*args, **kwargs)
            except CarrelError as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.waiting.append(run)
        return future

    def work(self, pick: int = 0) -> None:
        """Run one of the submitted actions."""
        self.waiting.pop(pick % len(self.waiting))()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.waiting.clear()


@dataclass(kw_only=True)
class Guarded(FakeBackend):
    """An engine that looks into the store whenever it is asked to start something (rule 5).

    Attributes:
        store: the real one.
        loses_answers: attempts start, but the caller gets an error.
    """

    store: Store
    loses_answers: bool = False

    def start(self, order: LaunchOrder) -> Handle:
        lease = self.store.lease(order.lease_id)
        request = self.store.request(order.request_id)
        assert request.lease == lease, "what starts has the newest epoch"
        assert lease.state is not LeaseState.RELEASED
        assert request.state is State.STARTING, "the intent is written before anything starts"
        assert lease.devices == tuple(device.id for device in order.devices)
        handle = super().start(order)
        if self.loses_answers:
            raise Unavailable("The engine's answer is lost.")
        return handle

    def fork(self, lease_id: str) -> Handle:
        """A spawner of the hub does, for a session."""
        handle = Handle(pid=1000 + len(self.attempts), started_at=self.clock())
        self.attempts[lease_id] = FakeAttempt(
            order=None,  # type: ignore[arg-type]  # only jobs have one
            handle=handle,
        )
        return handle

    def alive(self) -> list[str]:
        """Return the leases of all running attempts."""
        return [lease for lease, attempt in self.attempts.items() if attempt.alive]

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        """Do nothing: nothing here ends at a time limit."""

    def remove_orphans(self, live: object) -> None:
        """Remove nothing: there are never orphans here."""


def everything(store: Store) -> tuple[object, ...]:
    """Return all state that a service may change by itself."""
    requests = store.requests(EVERY)
    return (
        requests,
        tuple(store.events(request.id) for request in requests),
        store.leases(),
        store.ledger(),
        store.devices(),
        store.marks(),
    )
