"""Contract of backends, tested with the real ones and with the fake."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.interfaces.backend import (
    AttemptStatus,
    Backend,
    LaunchOrder,
    ProcessState,
)
from carrel.hub.interfaces.backend_settings import BackendSettings, DockerHost
from carrel.hub.records.gangs import split_member_id
from carrel.hub.records.images import Reference
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import JobSpec
from carrel.hub.records.utilization import ProcessReading
from carrel.spawners.docker.backend import DockerBackend
from carrel.spawners.fake import FakeBackend
from carrel.spawners.local.backend import LocalBackend
from carrel.spawners.slurm.backend import SlurmBackend
from carrel.spawners.slurm.times import time_limit

from ..docker.kit import make_site
from ..docker_engine import DockerEngine
from ..fake_service import eventually
from ..gang_orders import gang_orders
from ..slurm.cluster import DEVICES, NODES, SlurmCluster

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A backend whose service never answers, so that runners wait with their claim."""

    backend: Backend
    folder: Path
    service: socket.socket
    again: Callable[[], Backend]
    """Return the backend of a restarted service; the fake keeps its state."""
    devices: int = 1
    """Of each order."""
    pool: int = 2
    """Devices of all nodes."""

    def order(self) -> LaunchOrder:
        request = f"j-{self.folder.name[-16:]}-{next(_numbers)}"
        folder, home = self.folder / request, self.folder / "home"
        home.mkdir(exist_ok=True)
        folder.mkdir(mode=0o700)
        notebook = folder / "in.ipynb"
        notebook.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
        return LaunchOrder(
            lease_id=f"{request}.1",
            request_id=request,
            epoch=1,
            owner="student1",
            devices=self.backend.inventory()[: self.devices],
            job=JobSpec(notebook_name="in.ipynb"),
            seconds=60,
            token="token",
            folder=folder,
            input_path=notebook,
            home=home,
        )

    def gang(self, members: int = 2) -> list[LaunchOrder]:
        """Return the orders of a gang of members without devices, by rank."""
        lease = replace(self.order(), devices=())
        command = JobSpec(notebook_name="", command=("sleep", "600"))
        folder = lease.folder / "1"
        return gang_orders(replace(lease, job=command, folder=folder), members)

    def start(self, order: LaunchOrder) -> Handle:
        """Start an attempt, and wait until its process claims it; before that it is only Python."""
        handle = self.backend.start(order)
        if not isinstance(self.backend, FakeBackend):
            self.service.accept()[0].close()
        return handle

    def life(self, lease_id: str, handle: Handle | None = None) -> ProcessState:
        return self.backend.status({lease_id: handle})[lease_id].life


@pytest.fixture(
    params=[
        "local",
        "fake",
        pytest.param("slurm", marks=pytest.mark.slurm),
        pytest.param("docker", marks=pytest.mark.docker),
        # A start takes over a warm container.
        pytest.param("waiting", marks=[pytest.mark.docker, pytest.mark.slow]),
    ]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param in ("docker", "waiting"):
        made = in_containers(
            request.getfixturevalue("docker_engine"),
            request.getfixturevalue("base_image"),
            tmp_path,
            warm=request.param == "waiting",
        )
    elif request.param == "slurm":
        made = on_a_cluster(tmp_path, request.getfixturevalue("slurm"))
    else:
        made = on_this_machine(tmp_path, real=request.param == "local")
    with made as engine:
        yield engine
        for folder in tmp_path.glob("j-*"):
            # Repeat the stop, as the service does, if a pause of the machine used up its patience.
            eventually(lambda folder=folder: engine.backend.stop(f"{folder.name}.1", None))


@contextmanager
def on_this_machine(folder: Path, *, real: bool) -> Iterator[Engine]:
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(120)
        url = f"http://127.0.0.1:{service.getsockname()[1]}/services/carrel"
        settings = BackendSettings(state=folder, service_url=url, simulated_devices=2)
        fake = FakeBackend()
        make: Callable[[], Backend] = (lambda: LocalBackend(settings)) if real else (lambda: fake)
        yield Engine(backend=make(), folder=folder, service=service, again=make)


@contextmanager
def on_a_cluster(folder: Path, cluster: SlurmCluster) -> Iterator[Engine]:
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(120)
        url = f"http://127.0.0.1:{service.getsockname()[1]}/services/carrel"
        settings = BackendSettings(
            state=folder,
            service_url=url,
            installation="c0ffee",
            slurm=cluster.options(),
        )
        yield Engine(
            backend=SlurmBackend(settings, fresh_seconds=0),
            folder=folder,
            service=service,
            again=lambda: SlurmBackend(settings, fresh_seconds=0),
            pool=len(NODES) * DEVICES,
        )


@contextmanager
def in_containers(
    engine: DockerEngine, image: str, folder: Path, *, warm: bool
) -> Iterator[Engine]:
    site = make_site(folder, (DockerHost(node="local", url=engine.url),), image, warm=int(warm))
    site.service.down()
    address = (site.options.internal_ip, site.options.service_port)
    try:
        with socket.create_server(address) as service:
            service.settimeout(120)
            if warm:
                site.warm()
            yield Engine(
                backend=site.backend,
                folder=folder,
                service=service,
                again=site.again,
                devices=0 if warm else 1,
            )
    finally:
        site.close()


def without_queue(status: AttemptStatus) -> AttemptStatus:
    """Return a status without what only an engine with a queue of its own knows."""
    return replace(
        status, waiting="", expected_at=None, started_at=None, seen_at=None, ended_at=None
    )


def test_the_inventory_has_distinct_devices_and_is_stable(engine: Engine) -> None:
    devices = engine.backend.inventory()
    assert len({device.id for device in devices}) == len(devices) == engine.pool
    assert engine.backend.inventory() == devices


def test_the_python_kernel_is_among_the_kernels(engine: Engine) -> None:
    assert "python3" in engine.backend.kernels(engine.folder / "home")


def test_a_lease_that_never_ran_is_dead_and_stopping_it_confirms_that(engine: Engine) -> None:
    assert engine.backend.status({"j-absent.1": None}) == {
        "j-absent.1": AttemptStatus(life=ProcessState.DEAD)
    }
    assert engine.backend.stop("j-absent.1", None)


def test_a_started_attempt_is_alive_with_or_without_its_handle(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    expected = {order.lease_id: AttemptStatus(life=ProcessState.ALIVE, handle=handle)}
    for known in (handle, None):
        status = engine.backend.status({order.lease_id: known})
        assert {lease: without_queue(each) for lease, each in status.items()} == expected


def test_a_second_start_adopts_the_running_attempt(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    assert engine.backend.start(replace(order, token="another")) == handle
    assert engine.again().start(replace(order, token="a third")) == handle


def test_a_restarted_service_finds_and_stops_running_attempts(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    restarted = engine.again()
    assert restarted.status({order.lease_id: None})[order.lease_id].handle == handle
    assert restarted.stop(order.lease_id, handle)
    assert engine.life(order.lease_id, handle) is ProcessState.DEAD


def test_a_live_attempt_may_last_longer_than_its_first_time_limit(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    for seconds in (7200, 3600):  # it is never made shorter
        engine.backend.extend(order.lease_id, seconds)
    assert engine.life(order.lease_id, handle) is ProcessState.ALIVE
    if isinstance(engine.backend, SlurmBackend):
        (job,) = engine.backend.client.live_jobs("c0ffee").values()
        assert job.minutes == time_limit(7200)
    engine.backend.extend("j-unknown.1", 7200)


def test_removing_orphans_keeps_attempts_with_a_lease(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    engine.backend.remove_orphans(lambda: {order.lease_id})
    assert engine.life(order.lease_id, handle) is ProcessState.ALIVE


def test_stop_confirms_death_and_can_be_repeated(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    assert engine.backend.stop(order.lease_id, handle)
    assert engine.life(order.lease_id, handle) is ProcessState.DEAD
    assert engine.backend.stop(order.lease_id, handle)
    assert engine.backend.stop(order.lease_id, None)


def test_the_exit_status_is_reported_if_the_engine_saw_the_end(engine: Engine) -> None:
    order = engine.order()
    engine.backend.stop(order.lease_id, engine.start(order))
    status = engine.backend.status({order.lease_id: None})
    assert {lease: without_queue(each) for lease, each in status.items()} == {
        order.lease_id: AttemptStatus(life=ProcessState.DEAD, exit_status=-2)
    }


def test_leases_are_independent(engine: Engine) -> None:
    first, second = engine.order(), engine.order()
    engine.backend.start(first)
    handle = engine.backend.start(second)
    assert engine.backend.stop(first.lease_id, None)
    assert engine.life(second.lease_id, handle) is ProcessState.ALIVE


def test_a_lease_lives_as_long_as_one_of_its_members(engine: Engine) -> None:
    first, second = orders = engine.gang()
    lease, _ = split_member_id(first.lease_id)
    engine.backend.start_gang(orders)
    assert engine.life(lease) is ProcessState.ALIVE
    # On a cluster only members that have started can be stopped one by one.
    eventually(lambda: engine.backend.stop(first.lease_id, None))
    assert engine.life(first.lease_id) is ProcessState.DEAD
    assert engine.life(second.lease_id) is ProcessState.ALIVE
    restarted = engine.again()
    assert restarted.status({lease: None})[lease].life is ProcessState.ALIVE
    restarted.remove_orphans(lambda: {lease})
    assert engine.life(second.lease_id) is ProcessState.ALIVE
    assert restarted.stop(lease, None)
    assert engine.life(lease) is ProcessState.DEAD


def test_members_are_adopted_and_measured_together(engine: Engine) -> None:
    orders = engine.gang()
    lease, _ = split_member_id(orders[0].lease_id)
    members = {order.lease_id: None for order in orders}

    def statuses() -> dict[str, AttemptStatus]:
        # Slurm may start the jobs between two questions.
        found = engine.backend.status(members)
        return {member: without_queue(status) for member, status in found.items()}

    engine.backend.start_gang(orders)
    before = statuses()
    assert {status.life for status in before.values()} == {ProcessState.ALIVE}
    engine.backend.start_gang(orders)
    assert statuses() == before
    if isinstance(engine.backend, FakeBackend):
        engine.backend.readings[lease] = ProcessReading(cpu_seconds=1.0, memory_bytes=1)
    eventually(lambda: set(engine.backend.utilization({lease: None}).leases) == {lease})


def test_a_gang_whose_member_cannot_be_started_leaves_none(engine: Engine) -> None:
    first, second = engine.gang()
    if isinstance(engine.backend, FakeBackend):
        engine.backend.refuse_member = 1
    elif isinstance(engine.backend, DockerBackend):
        second = replace(second, image=f"base@sha256:{'0' * 64}")
    else:
        second = replace(second, folder=engine.folder / "in the way" / "1")
        (engine.folder / "in the way").write_text("")
    with pytest.raises(BackendFailed, match="Member 1 of worker: "):
        engine.backend.start_gang([first, second])
    assert engine.life(split_member_id(first.lease_id)[0]) is ProcessState.DEAD


def test_activity_covers_running_attempts_and_all_devices(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    handles = {order.lease_id: handle, "j-absent.1": None}
    eventually(lambda: engine.backend.activity(handles).cpu_seconds)
    first, second = engine.backend.activity(handles), engine.backend.activity(handles)
    assert set(first.cpu_seconds) == {order.lease_id}
    assert 0 <= first.cpu_seconds[order.lease_id] <= second.cpu_seconds[order.lease_id]
    assert set(first.devices) == {device.id for device in engine.backend.inventory()}
    engine.backend.stop(order.lease_id, handle)
    assert engine.backend.activity(handles).cpu_seconds == {}


def test_the_use_of_running_attempts_is_measured(engine: Engine) -> None:
    order = engine.order()
    handle = engine.backend.start(order)
    if isinstance(engine.backend, FakeBackend):
        engine.backend.readings[order.lease_id] = ProcessReading(cpu_seconds=1.0, memory_bytes=1)
    handles = {order.lease_id: handle, "j-absent.1": None}
    # Slurm has a first sample after a moment.
    eventually(lambda: engine.backend.utilization(handles).leases)
    first, second = engine.backend.utilization(handles), engine.backend.utilization(handles)
    assert set(first.leases) == {order.lease_id}
    before, after = first.leases[order.lease_id], second.leases[order.lease_id]
    assert 0 <= before.cpu_seconds <= after.cpu_seconds
    assert after.memory_bytes > 0
    assert first.devices == {}  # simulated devices are not measured
    engine.backend.stop(order.lease_id, handle)
    assert engine.backend.utilization(handles).leases == {}


def test_the_journal_of_a_new_attempt_is_empty(engine: Engine) -> None:
    assert list(engine.backend.journal(engine.order().folder)) == []


def test_a_failed_start_leaves_no_process(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    order = engine.order()
    if isinstance(engine.backend, FakeBackend):
        engine.backend.refuse_starts = "no room"
    elif isinstance(engine.backend, DockerBackend):
        order = replace(order, image=f"base@sha256:{'0' * 64}")
    elif isinstance(engine.backend, SlurmBackend):
        order = replace(order, devices=(), node="node9")
    else:
        monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(
        BackendFailed, match=r"no room|No such file|is not on local|Invalid node name"
    ):
        engine.backend.start(order)
    assert engine.life(order.lease_id) is ProcessState.DEAD


def test_an_engine_lists_its_images_or_needs_none(engine: Engine) -> None:
    images = engine.backend.images()
    if engine.backend.name != "docker":
        assert images is None
        return
    assert images
    assert any(image.default for image in images)
    assert all(Reference.read(image.reference) for image in images)
