"""How the Docker backend interprets surveys, without an engine."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from carrel.hub.attempts.spec import FILES
from carrel.hub.errors import Unavailable
from carrel.hub.interfaces.backend import ProcessState
from carrel.hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from carrel.hub.records.leases import Handle
from carrel.spawners.docker.backend import DockerBackend
from carrel.spawners.docker.containers.networks import Networks
from carrel.spawners.docker.nodes.node import Node
from carrel.spawners.docker.nodes.warm_pool import WarmPool

from ....gang_orders import gang_orders
from ...conftest import Desk

PATIENCE = 20.0


@pytest.fixture
def backend(tmp_path: Path) -> DockerBackend:
    options = DockerOptions(
        hosts=(DockerHost(node="node", url=f"unix://{tmp_path}/nobody.sock"),),
        subnets="10.213.0.0/20",
        internal_ip="10.213.0.1",
        hub_port=1,
        service_port=2,
        image="base",
        uid=1000,
        memory=2**30,
        cpus=1.0,
        pids=128,
        tmp=2**26,
    )
    settings = BackendSettings(
        state=tmp_path,
        service_url="http://10.213.0.1:2",
        simulated_devices=1,
        installation="abc123",
        docker=options,
    )
    return DockerBackend(settings)


def test_a_start_that_returns_during_a_survey_is_not_dead(
    backend: DockerBackend, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's response may be older than the container."""
    begun, go_on = threading.Event(), threading.Event()

    def start(_self: WarmPool, _order: object, **_: object) -> SimpleNamespace:
        begun.set()
        assert go_on.wait(PATIENCE)
        return SimpleNamespace(handle=Handle(pid=1, started_at=1.0))

    def survey(_self: Node, _seconds: float | None = None) -> dict[str, list[object]]:
        if threading.current_thread() is not starting:
            go_on.set()
            starting.join(PATIENCE)
        return {}

    monkeypatch.setattr(WarmPool, "start", start)
    monkeypatch.setattr(Networks, "ensure", lambda *_, **__: "network")
    monkeypatch.setattr(Node, "require_firewall", lambda *_: None)
    monkeypatch.setattr(Node, "digest_of", lambda *_: "sha256:1")
    monkeypatch.setattr(Node, "survey", survey)
    order = desk.order(devices=0)
    starting = threading.Thread(target=backend.start, args=(order,))
    starting.start()
    assert begun.wait(PATIENCE)

    seen = backend.status({order.lease_id: None})[order.lease_id]
    assert not starting.is_alive()
    assert seen.life is ProcessState.UNKNOWN
    assert backend.status({order.lease_id: None})[order.lease_id].life is ProcessState.DEAD


def test_trusted_work_runs_as_the_service_beside_the_containers(
    backend: DockerBackend, desk: Desk
) -> None:
    """It needs no engine: a runner of the service's own account, found by its lease."""
    order = replace(desk.order(), trusted=True)
    lease = order.lease_id
    handle = backend.start(order)
    assert backend.status({lease: handle}, trusted=[lease])[lease].life is ProcessState.ALIVE
    assert backend.status({lease: None}, trusted=[lease])[lease].handle == handle
    assert backend.stop(lease, handle, trusted=True)
    assert backend.status({lease: handle}, trusted=[lease])[lease].life is ProcessState.DEAD


def test_no_id_makes_work_trusted(backend: DockerBackend, desk: Desk) -> None:
    """Whatever its id is, work that is not trusted goes to the engine, which is not there."""
    order = replace(desk.order(), lease_id="g-aaaaaaaa.1", request_id="g-aaaaaaaa")
    with pytest.raises(Unavailable):
        backend.start(order)
    assert backend.status({order.lease_id: None})[order.lease_id].life is ProcessState.UNKNOWN


def test_warm_containers_are_created_although_orphans_cannot_be_listed(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object, **__: object) -> None:
        raise Unavailable("The Docker engine on node is slow: it has not answered yet.")

    engine, places = Mock(), Mock()
    engine.containers.return_value = []
    engine.create.return_value = "container-1"
    places.names.return_value, places.make.return_value = frozenset(), ()
    places.listens.return_value = True
    backend.warm.engine = backend.node("node").engine = engine
    backend.warm.late_mounts, backend.warm.limit = places, 1
    backend.warm.free_memory = lambda: 1 << 40
    monkeypatch.setattr(Node, "survey", slow)
    monkeypatch.setattr(Networks, "remove_unused", slow)
    backend.warm.expect("sha256:1")
    backend.remove_orphans(frozenset)
    assert backend.warm.ready_count() == 1


def test_no_member_can_choose_the_folder_of_the_host_that_the_others_get(
    backend: DockerBackend, desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The folder of output files, which all share, is in that of member 0, which may replace it.

    Code of its owner may run there before all have joined: Python reads files of the home when it
    starts.
    """
    secret = tmp_path / "secret"
    secret.mkdir()
    order = desk.order(devices=0, command=("true",))
    files = order.folder / FILES
    orders = gang_orders(order, 2)
    mounts: dict[str, object] = {}

    def create(name: str, body: dict[str, dict[str, object]]) -> str:
        mounts[name] = body["HostConfig"]
        return name

    def network(*_: object, **__: object) -> str:
        """Act as member 0 between the checks of another member and its start."""
        if any(name.endswith(".m0") for name in mounts):
            files.rename(files.with_name("moved"))
            files.symlink_to(secret)
        return "network"

    engine = Mock()
    engine.create.side_effect = create
    engine.inspect.return_value = SimpleNamespace(handle=Handle(pid=1, started_at=1.0))
    engine.info.return_value = {}
    backend.node("node").engine = engine
    monkeypatch.setattr(Networks, "ensure_gang", network)
    monkeypatch.setattr(Node, "require_firewall", lambda *_: None)
    monkeypatch.setattr(Node, "digest_of", lambda *_: "sha256:1")
    monkeypatch.setattr(Node, "survey", lambda *_: {})
    backend.start_gang(orders)
    assert len(mounts) == 2
    assert str(secret) not in str(mounts)
    assert str(mounts).count(f"'Source': '{files}'") == 1
