"""The fake backend's controls for tests and simulations."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.errors import BackendFailed, Unavailable
from carrel.hub.interfaces.backend import AttemptStatus, LaunchOrder, ProcessState
from carrel.hub.records.events import NewEvent
from carrel.hub.records.requests import JobSpec
from carrel.hub.scheduling.model.snapshot import Health
from carrel.spawners.fake import FakeBackend

ORDER = LaunchOrder(
    lease_id="j-1.1",
    request_id="j-1",
    epoch=1,
    owner="student1",
    devices=(),
    job=JobSpec(notebook_name="in.ipynb"),
    seconds=60,
    token="token",
    folder=Path("folder"),
    input_path=Path("in.ipynb"),
    home=Path("home"),
)


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(clock=lambda: 7.0)


def test_an_attempt_ends_when_a_test_ends_it(backend: FakeBackend) -> None:
    backend.start(ORDER)
    backend.end("j-1.1", exit_status=-9)
    assert backend.status({"j-1.1": None}) == {
        "j-1.1": AttemptStatus(life=ProcessState.DEAD, exit_status=-9)
    }
    with pytest.raises(BackendFailed, match="has ended"):
        backend.start(ORDER)


def test_a_stubborn_attempt_is_never_confirmed_dead(backend: FakeBackend) -> None:
    handle = backend.start(ORDER)
    backend.attempts["j-1.1"].stubborn = True
    assert not backend.stop("j-1.1", handle)
    assert backend.status({"j-1.1": None})["j-1.1"].life is ProcessState.ALIVE


def test_the_state_on_a_silent_engine_is_unknown(backend: FakeBackend) -> None:
    handle = backend.start(ORDER)
    backend.silent = True
    assert backend.status({"j-1.1": handle}) == {"j-1.1": AttemptStatus(life=ProcessState.UNKNOWN)}
    assert not backend.stop("j-1.1", handle)
    with pytest.raises(Unavailable):
        backend.inventory()


def test_the_journal_holds_what_was_reported(backend: FakeBackend) -> None:
    backend.start(ORDER)
    backend.report("j-1.1", "cells", {"cells": 3}, at=8.0)
    backend.report("j-1.1", "cell_started", {"index": 0, "number": 1}, at=9.0)
    assert backend.journal(Path("folder")) == (
        NewEvent(seq=1, at=8.0, kind="cells", data={"cells": 3}),
        NewEvent(seq=2, at=9.0, kind="cell_started", data={"index": 0, "number": 1}),
    )


def test_the_health_of_a_device_can_be_changed(backend: FakeBackend) -> None:
    backend.set_health(backend.devices[0].id, Health.SICK, "it coughs")
    assert [(d.health, d.why) for d in backend.inventory()] == [
        (Health.SICK, "it coughs"),
        (Health.OK, ""),
    ]
