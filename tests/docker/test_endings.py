"""How containers end: out of memory, removed by hand, without a lease, and with the engine down."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from carrel.hub.errors import BackendFailed, Unavailable
from carrel.hub.interfaces.backend import ProcessState
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import CauseCode
from carrel.spawners.docker.backend import DockerBackend
from carrel.spawners.docker.containers.template import LABEL, LEASE, name_of

from ..fake_service import eventually
from ..spawners.notebooks import notebook
from .kit import Site

pytestmark = pytest.mark.docker

ASLEEP = ("sleep", "600")


def life(site: Site, lease: str, backend: DockerBackend | None = None) -> ProcessState:
    return (backend or site.backend).status({lease: None})[lease].life


def of_lease(site: Site, lease: str) -> list[str]:
    wanted = {LABEL: site.settings.installation, LEASE: lease}
    return [each.id for each in site.engine.containers(wanted)]


def test_a_cell_that_exceeds_its_memory_is_reported_as_out_of_memory(site: Site) -> None:
    order = site.order(notebook("x = bytearray(1)", "held = b'1' * (900 << 20)"))
    site.backend.start(order)
    site.service.wait_for_event("ended")
    assert site.service.ended["code"] == "out_of_memory"
    assert "emory" in site.service.ended["message"]


def test_a_container_that_is_killed_for_memory_says_so(site: Site) -> None:
    """No process inside is left to report it."""
    order = site.order(command=ASLEEP)
    site.backend.start(order)
    api, name = site.api, name_of(site.settings.installation, order.lease_id)
    hog = api.exec_create(name, ["python", "-c", "b'1' * (900 << 20)"])["Id"]
    with suppress(docker.errors.APIError):
        api.exec_start(hog)
    api.kill(name, "SIGKILL")
    eventually(lambda: life(site, order.lease_id) is ProcessState.DEAD)
    cause = site.backend.status({order.lease_id: None})[order.lease_id].cause
    assert cause is not None
    assert cause.code is CauseCode.OUT_OF_MEMORY
    assert cause.message == "Killed for memory: its container exceeded its limit of 512 MiB."


def test_a_container_removed_by_hand_is_dead_at_once(site: Site) -> None:
    order = site.order(command=ASLEEP)
    handle = site.backend.start(order)
    assert life(site, order.lease_id) is ProcessState.ALIVE
    site.api.remove_container(name_of(site.settings.installation, order.lease_id), force=True)
    began = time.monotonic()
    eventually(lambda: life(site, order.lease_id) is ProcessState.DEAD)
    assert time.monotonic() - began < 5
    assert site.backend.stop(order.lease_id, handle)


def test_stopping_removes_the_container_and_keeps_the_log(site: Site) -> None:
    order = site.order(command=("sh", "-c", "echo here; sleep 600"))
    site.backend.start(order)
    eventually(lambda: "here" in site.log(order))
    assert site.backend.stop(order.lease_id, None)
    assert of_lease(site, order.lease_id) == []
    assert "here" in site.log(order)


def test_orphans_are_removed_once_and_other_containers_stay(site: Site) -> None:
    kept, stray = site.order(command=ASLEEP), site.order(command=ASLEEP)
    for order in (kept, stray):
        site.backend.start(order)
    # The service was killed; while it was away the lease of one of them was given back.
    anew = site.again()
    anew.remove_orphans(lambda: {kept.lease_id})
    assert of_lease(site, stray.lease_id) == []
    assert len(of_lease(site, kept.lease_id)) == 1
    assert life(site, kept.lease_id, anew) is ProcessState.ALIVE
    anew.remove_orphans(lambda: {kept.lease_id})
    assert life(site, kept.lease_id, anew) is ProcessState.ALIVE


def test_an_unused_network_of_a_user_is_removed(site: Site) -> None:
    order = site.order(command=ASLEEP, owner="leaves")
    site.backend.start(order)
    networks = site.backend.node("local").networks
    later = time.time() + 3600
    networks.remove_unused(later)
    assert networks.name("leaves") in {each.name for each in site.engine.networks()}
    assert site.backend.stop(order.lease_id, None)
    # Who comes back in a moment finds it; who stays away does not.
    networks.remove_unused(later + 60)
    assert networks.name("leaves") in {each.name for each in site.engine.networks()}
    networks.remove_unused(later + 3600)
    assert networks.name("leaves") not in {each.name for each in site.engine.networks()}


def test_a_notice_signals_only_processes_with_a_handler(site: Site) -> None:
    waits = (
        "import signal, time, os; signal.signal(signal.SIGUSR1, lambda *_: print('asked', "
        "open(os.environ['CARREL_NOTICE']).read(), flush=True)); print('ready', flush=True); "
        "time.sleep(600)"
    )
    order = site.order(command=("python", "-c", waits))
    handle = site.backend.start(order)
    eventually(lambda: "ready" in site.log(order))
    notice = StopNotice(
        kind=NoticeKind.URGENT, message="Make room.", given_at=1.0, stops_at=2.0, group="cs101"
    )
    site.backend.request_checkpoint(order.lease_id, handle, order.folder, notice)
    eventually(lambda: "asked" in site.log(order) and "Make room." in site.log(order))
    assert life(site, order.lease_id) is ProcessState.ALIVE


def test_a_missing_image_is_reported(site: Site) -> None:
    missing = f"torch@sha256:{'1' * 64}"
    order = site.order(command=ASLEEP, image=missing)
    with pytest.raises(BackendFailed, match=f"The image {missing} is not on local"):
        site.backend.start(order)
    assert of_lease(site, order.lease_id) == []


# -- an engine that does not answer -----------------------------------------------------------


@pytest.fixture
def no_engine(site: Site) -> DockerBackend:
    """The same installation, whose engine is down."""
    assert site.settings.docker is not None
    nowhere = DockerHost(node="local", url=f"unix://{site.folder}/nobody.sock")
    options = replace(site.settings.docker, hosts=(nowhere,))
    return DockerBackend(replace(site.settings, docker=options))


def test_the_state_on_an_engine_that_does_not_answer_is_unknown(
    site: Site, no_engine: DockerBackend
) -> None:
    order = site.order(command=ASLEEP)
    handle = site.backend.start(order)
    assert life(site, order.lease_id, no_engine) is ProcessState.UNKNOWN
    assert not no_engine.stop(order.lease_id, handle)
    assert life(site, order.lease_id) is ProcessState.ALIVE
    (state,) = no_engine.nodes()
    assert state.why_not == "The Docker engine on local does not answer."
    with pytest.raises(Unavailable, match=r"The Docker engine on local does not answer\."):
        no_engine.start(site.order(command=ASLEEP))


def test_a_slow_engine_delays_the_loop_only_once(site: Site) -> None:
    order = site.order(command=ASLEEP)
    site.backend.start(order)
    with hanging() as url:
        assert site.settings.docker is not None
        host = DockerHost(node="local", url=url)
        options = replace(site.settings.docker, hosts=(host,))
        slow = DockerBackend(replace(site.settings, docker=options))
        began = time.monotonic()
        assert life(site, order.lease_id, slow) is ProcessState.UNKNOWN
        assert time.monotonic() - began < 3
        began = time.monotonic()
        for _ in range(20):
            assert life(site, order.lease_id, slow) is ProcessState.UNKNOWN
            assert slow.nodes()[0].why_not.startswith("The Docker engine on local is slow")
        assert time.monotonic() - began < 1


@contextmanager
def hanging() -> Iterator[str]:
    """A socket that takes questions and answers none."""
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        listener.listen(50)
        yield f"unix://{short}/s"


# -- several engines --------------------------------------------------------------------------


def test_a_lease_is_looked_up_only_on_nodes_that_may_have_it(site: Site, tmp_path: Path) -> None:
    """One machine of two is silent: what runs on the other is known, and what ended there too."""
    assert site.settings.docker is not None
    nowhere = DockerHost(node="far", url=f"unix://{tmp_path}/nobody.sock")
    hosts = (*site.settings.docker.hosts, nowhere)
    both = DockerBackend(replace(site.settings, docker=replace(site.settings.docker, hosts=hosts)))
    order = site.order(command=ASLEEP, node="local")
    handle = both.start(order)
    assert life(site, order.lease_id, both) is ProcessState.ALIVE
    assert both.stop(order.lease_id, handle)
    assert life(site, order.lease_id, both) is ProcessState.DEAD
    # It is unknown where this one was.
    assert life(site, "j-never-seen.1", both) is ProcessState.UNKNOWN
    assert {state.name: bool(state.why_not) for state in both.nodes()} == {
        "local": False,
        "far": True,
    }
    assert {device.node for device in both.inventory()} == {"local", "far"}
