"""Case 9: a device falls off the bus during a lease: quarantine, requeue, no charge.

The inventory is the real one, through the driver's library as it behaves in each case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.interfaces.devices import DriverProblem
from carrel.hub.records.leases import Handle
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.snapshot import Device, MarkKind
from carrel.hub.schemas import RequestOut
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend
from carrel.spawners.local.backend import LocalBackend

from ...hub.doubles import ADMIN, STUDENT1, Clock, FakeHub, build, no_time
from ...hub.requests.samples import job
from ...stores import new_store
from ..conftest import Driver


class Machine(FakeBackend):
    """A fake backend with the devices of the driver."""

    local: LocalBackend

    def inventory(self) -> tuple[Device, ...]:
        return self.local.inventory()

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        return self.local.driver_problems()


@dataclass
class Site:
    context: Context
    backend: Machine
    clock: Clock
    loop: Loop

    def settle(self, cycles: int = 3) -> None:
        for _ in range(cycles):
            self.loop.cycle()
            assert self.loop.wait_for_actions(30)

    def running(self) -> RequestOut:
        made = JobService(self.context).submit(STUDENT1, job())
        self.settle(1)
        lease = RequestQueries(self.context).request(ADMIN, made.id).lease
        assert lease is not None
        handle = self.backend.attempts[lease.id].handle
        self.context.store.apply_to_lease(
            lease.id,
            lifecycle.start,
            Handle(pid=handle.pid, started_at=handle.started_at),
            now=self.clock.now,
        )
        return made

    def device_of(self, request: RequestOut) -> str:
        lease = RequestQueries(self.context).request(ADMIN, request.id).lease
        assert lease is not None
        return lease.devices[0].id[-2:]


@pytest.fixture
def site(tmp_path: Path, driver: Driver) -> Iterator[Site]:
    driver(GPUS=2)
    clock = Clock()
    backend = Machine(clock=clock)
    settings = BackendSettings(state=tmp_path, service_url="http://127.0.0.1:1")
    backend.local = LocalBackend(settings, node="local")
    context = build(new_store(), backend, FakeHub(), clock, tmp_path, devices=0)
    found = Site(context, backend, clock, Loop(context, node="local", decision_clock=no_time))
    found.loop.inventory()
    yield found
    found.loop.close()


@pytest.mark.parametrize(
    ("behaviour", "evidence"),
    [
        ({"LOST": "0"}, "fallen off the bus"),
        ({"ECC": "0:3"}, "3 uncorrected memory errors"),
        ({"REMAP": "0:failed"}, "defective memory rows"),
        ({"NO_HANDLE": "0"}, "no longer reports"),
    ],
)
def test_the_job_of_a_failed_device_continues_on_another_uncharged(
    site: Site, driver: Driver, behaviour: dict[str, object], evidence: str
) -> None:
    made = site.running()
    assert site.device_of(made) == "00"
    site.clock.pass_(120)
    site.settle(2)

    driver(GPUS=2, **behaviour)
    site.loop.inventory()
    site.settle()

    (mark,) = site.context.store.marks()
    assert mark.fault
    assert evidence in mark.why
    assert site.device_of(made) == "01"
    assert site.context.store.charged([made.id]) == {made.id: 0.0}

    driver(GPUS=2)
    site.loop.inventory()
    first = next(d for d in site.context.store.devices() if d.id.endswith("00"))
    assert not first.schedulable


def test_a_driver_that_fails_cordons_its_devices_until_it_answers_and_ends_no_work(
    site: Site, driver: Driver
) -> None:
    made = site.running()
    driver(INIT=999)
    site.loop.inventory()
    site.settle()
    marks = site.context.store.marks()
    assert {(mark.kind, mark.why) for mark in marks} == {
        (MarkKind.UNREACHABLE, "The NVIDIA driver could not be queried: Unknown Error.")
    }
    queries = RequestQueries(site.context)
    assert queries.request(ADMIN, made.id).state == "running"
    waiting = JobService(site.context).submit(STUDENT1, job())
    site.settle()
    wait = queries.request(ADMIN, waiting.id).wait
    assert wait is not None
    assert "The NVIDIA driver could not be queried" in wait.sentence

    driver(INIT=0)
    site.loop.inventory()
    site.settle()
    assert site.context.store.marks() == ()
    assert queries.request(ADMIN, waiting.id).state == "starting"


def test_the_devices_of_a_driver_that_fails_are_kept_after_a_restart(
    site: Site, driver: Driver, tmp_path: Path
) -> None:
    made = site.running()
    settings = BackendSettings(state=tmp_path, service_url="http://127.0.0.1:1")
    site.backend.local = LocalBackend(settings, node="local")
    driver(INIT=999)
    site.loop.inventory()
    site.settle()
    assert len(site.context.store.devices()) == 2
    assert RequestQueries(site.context).request(ADMIN, made.id).state == "running"
