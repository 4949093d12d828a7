"""Work is trusted by the kind of its request, never by its id."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.interfaces.backend import AttemptStatus
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import Cause, CauseCode, JobSpec, NewRequest
from carrel.hub.scheduling.model.snapshot import Kind
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import Clock, FakeHub, build, no_time
from ..world import World

ROOT = Path(__file__).parents[3]
JOB = NewRequest(
    id="x-aaaaaaaa",
    kind=Kind.JOB,
    owner="teacher",
    group="cs101",
    devices=0,
    seconds=60,
    idempotency_key="a",
    job=JobSpec(notebook_name="", command=("true",)),
)


@dataclass
class RecordingBackend(FakeBackend):
    """Records the leases that it is told are trusted."""

    asked: list[tuple[str, bool]] = field(default_factory=list)
    stopped: list[tuple[str, bool]] = field(default_factory=list)

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        self.asked += [(lease, lease in trusted) for lease in leases]
        return super().status(leases, trusted=trusted)

    def stop(
        self,
        lease_id: str,
        handle: Handle | None,
        *,
        trusted: bool = False,
        patience: float = 4.0,
    ) -> bool:
        self.stopped.append((lease_id, trusted))
        return super().stop(lease_id, handle, trusted=trusted, patience=patience)


@pytest.mark.parametrize(
    ("kind", "id_", "trusted"),
    [(Kind.JOB, "g-aaaaaaaa", False), (Kind.GRADING, "j-aaaaaaaa", True)],
)
def test_the_backend_is_told_at_start_status_and_stop(
    tmp_path: Path, kind: Kind, id_: str, trusted: bool
) -> None:
    clock = Clock()
    backend = RecordingBackend(clock=clock)
    hub = FakeHub()
    context = build(new_store(), backend, hub, clock, tmp_path)
    world = World(context, backend, hub, clock, Loop(context, node="local", decision_clock=no_time))
    context.store.submit(replace(JOB, kind=kind, id=id_), clock.now)
    lease = f"{id_}.1"

    world.settle(2)
    assert backend.attempts[lease].order.trusted is trusted
    cause = Cause(code=CauseCode.TIME_LIMIT, message="Its time is over.")
    context.store.apply(id_, lifecycle.stop, State.TIMED_OUT, cause, now=clock.now)
    clock.pass_(60)
    world.settle(3)
    world.loop.close()
    assert context.store.request(id_).state is State.TIMED_OUT
    assert set(backend.asked) == {(lease, trusted)}
    assert set(backend.stopped) == {(lease, trusted)}


def test_no_product_code_derives_trust_from_an_id() -> None:
    prefix = re.compile(r"""startswith\(f?["'](?:\{\w+\}|[a-z])-["']""")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("hub", "spawners", "courses", "extensions")
        for path in (ROOT / folder).rglob("*.py")
        if prefix.search(path.read_text())
    ]
    assert found == []
