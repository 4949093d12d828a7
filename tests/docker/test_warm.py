"""Warm containers: without an owner until a job claims one, and used once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.interfaces.backend_settings import DockerHost
from carrel.spawners.docker.containers.late_mounts import LateMounts, late_mounts_of, mounted
from carrel.spawners.docker.containers.template import LABEL, WARM, lease_of
from carrel.spawners.docker.engine.client import DockerClient

from ..fake_service import eventually
from ..spawners.notebooks import notebook
from .inside import inside
from .kit import Site, make_site

pytestmark = pytest.mark.docker

LOOK = """
import os, pathlib
print(os.environ["HOME"], os.environ["USER"], os.getcwd())
print(sorted(each.name for each in pathlib.Path("/home").iterdir()))
pathlib.Path("made.txt").write_text("by the job")
for place in ("/carrel/input.ipynb", "/course/cs101/data.csv", "/home/other", "/carrel/x"):
    try:
        pathlib.Path(place).write_text("changed")
    except OSError as error:
        print(place, error.strerror)
print(pathlib.Path("/course/cs101/data.csv").read_text())
"""


@pytest.fixture
def site(docker_host: DockerHost, base_image: str, tmp_path: Path) -> Iterator[Site]:
    made = make_site(tmp_path, (docker_host,), base_image, warm=2)
    yield made
    made.service.down()
    made.close()


def ids(site: Site) -> dict[str, str]:
    """Of all containers of leases."""
    listed = site.engine.containers({LABEL: site.settings.installation})
    return {lease_of(each.name, each.labels): each.id for each in listed}


def printed(order: LaunchOrder) -> list[str]:
    executed = json.loads((order.folder / "output.ipynb").read_text())
    return "".join(
        "".join(output["text"]) for output in executed["cells"][-1]["outputs"]
    ).splitlines()


def ended(site: Site, order: LaunchOrder, backend: Any = None) -> None:
    lease = order.lease_id
    status = (backend or site.backend).status
    eventually(lambda: status({lease: None})[lease].life is ProcessState.DEAD)


def test_a_warm_container_is_hardened_like_any_other_and_has_no_owner(site: Site) -> None:
    cold = site.order(command=("sleep", "600"), internet=False)
    site.backend.start(cold)
    (waiting,) = site.warm()
    found = site.api.inspect_container(waiting)
    other = site.api.inspect_container(ids(site)[cold.lease_id])
    differs = {"NetworkMode", "Mounts", "Dns", "ContainerIDFile"}
    assert {key: value for key, value in found["HostConfig"].items() if key not in differs} == {
        key: value for key, value in other["HostConfig"].items() if key not in differs
    }
    assert found["Config"]["User"] == other["Config"]["User"]
    assert [*found["NetworkSettings"]["Networks"]] == ["none"]
    assert not any(mount["RW"] for mount in found["Mounts"])
    assert not {key for key in found["Config"]["Labels"] if "owner" in key or "request" in key}
    looks = "ls -A /home /course /carrel/attempt; cat /proc/net/dev | tail -n +3; id -u"
    said = inside(site.api, waiting, "sh", "-c", looks).split()
    assert sorted(word for word in said if "/" in word) == [
        "/carrel/attempt:",
        "/course:",
        "/home:",
    ]
    assert [word for word in said if word.endswith(":") and "/" not in word] == ["lo:"]
    assert said[-1] == "1000"


def test_a_job_takes_it_over_as_its_owner_and_its_files_are_kept(site: Site) -> None:
    data = site.folder / "courses" / "cs101" / "data"
    data.mkdir(parents=True)
    (data / "data.csv").write_text("1,2,3")
    (waiting,) = site.warm()
    order = replace(site.order(notebook(LOOK)), group="cs101")
    handle = site.backend.start(order)
    assert ids(site)[order.lease_id] == waiting
    site.service.wait_for_event("ended")
    assert site.service.ended["code"] == "succeeded"
    assert printed(order) == [
        "/home/student1 student1 /home/student1",
        "['student1']",
        "/carrel/input.ipynb Read-only file system",
        "/course/cs101/data.csv Read-only file system",
        "/home/other Read-only file system",
        "/carrel/x Read-only file system",
        "1,2,3",
    ]
    eventually(
        lambda: site.backend.status({order.lease_id: handle})[order.lease_id].exit_status == 0
    )
    assert [event.kind for event in site.backend.journal(order.folder)] == site.service.kinds()
    site.backend.stop(order.lease_id, handle)
    site.backend.remove_orphans(frozenset)
    assert late_mounts_of(site.settings).filled() == frozenset()
    assert (site.folder / "homes" / "student1" / "made.txt").read_text() == "by the job"
    assert (order.folder / "output.ipynb").exists()
    assert order.input_path.read_text() != "changed"


def test_it_imports_ahead_what_jobs_of_its_image_have_imported(site: Site) -> None:
    look = (
        "import os, sys\n"
        "print('jinja2' in sys.modules, 'CARREL_KNOWN_PACKAGES' in os.environ)\n"
        "import jinja2\n"
    )

    def knows(container: str) -> bool:
        variables = site.api.inspect_container(container)["Config"]["Env"]
        return any("jinja2" in variable for variable in variables)

    def has_imported(container: str) -> bool:
        # The only one of its modules that /proc shows.
        maps = inside(site.api, container, "sh", "-c", "cat /proc/[0-9]*/maps 2>/dev/null")
        return "markupsafe" in maps

    def run() -> list[str]:
        for waiting in filter(knows, site.warm()):
            eventually(lambda waiting=waiting: has_imported(waiting))
        order = site.order(notebook(look))
        handle = site.backend.start(order)
        ended(site, order)
        site.backend.stop(order.lease_id, handle)
        return printed(order)

    # At most two containers were created before the first job had ended.
    assert [run() for _ in range(3)][-1] == ["True False"]


def test_two_people_never_get_the_same_one(site: Site) -> None:
    waiting = site.warm(2)
    orders = [site.order(command=("sleep", "600"), owner=name) for name in ("ada", "bob", "eve")]
    for order in orders:
        site.backend.start(order)
    found = [ids(site)[order.lease_id] for order in orders]
    assert len({*found}) == 3
    assert {*found[:2]} == {*waiting}
    seen = [{*inside(site.api, each, "ls", "/home").split()} for each in found]
    assert [each - {"student"} for each in seen] == [{"ada"}, {"bob"}, {"eve"}]


def test_a_job_with_a_device_or_without_the_internet_gets_its_own(site: Site) -> None:
    (waiting,) = site.warm()
    device = site.order(command=("sleep", "600"), devices=site.backend.inventory()[:1])
    offline = site.order(command=("sleep", "600"), internet=False)
    for order in (device, offline):
        site.backend.start(order)
        assert ids(site)[order.lease_id] != waiting
    assert site.backend.warm.ready_count() == 1


def test_killed_between_the_claim_and_the_job_it_has_not_run_and_runs_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (waiting,) = site.warm()
    order = site.order(notebook("print('once')"))

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(DockerClient, "change_network", die)
        with pytest.raises(KeyboardInterrupt):
            site.backend.start(order)
    assert ids(site)[order.lease_id] == waiting
    anew = site.again()
    assert anew.status({order.lease_id: None})[order.lease_id].life is ProcessState.DEAD
    anew.start(order)
    assert ids(site)[order.lease_id] != waiting
    ended(site, order, anew)
    assert site.service.kinds().count("ended") == 1
    assert [lease for lease, _ in site.service.started] == [order.lease_id]


def test_killed_after_the_claim_with_no_lease_left_it_is_removed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.warm()
    order = site.order(command=("sleep", "600"))

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(LateMounts, "fill", die)
        with pytest.raises(KeyboardInterrupt):
            site.backend.start(order)
    site.again().remove_orphans(frozenset)
    assert ids(site) == {}
    site.again().remove_orphans(frozenset)
    assert not any(str(site.folder / "waiting" / "w") in place for place in mounted())


def test_a_service_killed_before_the_wake_up_leaves_a_job_that_runs_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (waiting,) = site.warm()
    order = site.order(notebook("print('once')"))
    with monkeypatch.context() as killed:
        killed.setattr(LateMounts, "wake", lambda *_: False)
        site.backend.start(order)
    assert site.service.started == []
    anew = site.again()
    assert anew.status({order.lease_id: None})[order.lease_id].life is ProcessState.ALIVE
    assert ids(site)[order.lease_id] == waiting
    ended(site, order, anew)
    assert printed(order) == ["once"]
    assert [lease for lease, _ in site.service.started] == [order.lease_id]


def test_the_next_service_removes_warm_containers_and_keeps_running_jobs(site: Site) -> None:
    site.warm(2)
    order = site.order(command=("sleep", "600"))
    site.backend.start(order)
    anew = site.again()
    anew.remove_orphans(lambda: {order.lease_id})
    assert [*ids(site)] == [order.lease_id]
    assert anew.status({order.lease_id: None})[order.lease_id].life is ProcessState.ALIVE
    assert anew.stop(order.lease_id, None)


def test_a_warm_container_removed_by_hand_affects_no_job(site: Site) -> None:
    (waiting,) = site.warm()
    site.engine.remove(waiting)
    order = site.order(command=("sleep", "600"))
    site.backend.start(order)
    assert [*ids(site)] == [order.lease_id]


def test_where_mounts_do_not_reach_the_engine_a_job_gets_its_own(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (waiting,) = site.warm()
    monkeypatch.setattr(LateMounts, "fill", lambda *_: None)
    order = site.order(notebook("print('cold')"))
    site.backend.start(order)
    assert ids(site)[order.lease_id] != waiting
    ended(site, order)
    assert printed(order) == ["cold"]
    site.backend.remove_orphans(lambda: {order.lease_id})
    assert site.backend.warm.ready_count() == 0


def test_a_warm_container_that_ends_by_itself_is_not_replaced_at_once(site: Site) -> None:
    (waiting,) = site.warm()
    site.engine.kill(waiting, "SIGKILL")
    site.engine.wait(waiting, 10)
    site.backend.remove_orphans(frozenset)
    assert site.engine.containers({LABEL: site.settings.installation, WARM: ""}) == ()


def test_warm_containers_are_removed_at_once_if_a_job_needs_their_memory(site: Site) -> None:
    site.warm(2)
    answers = itertools.chain([0], itertools.repeat(1 << 40))
    site.backend.warm.free_memory = lambda: next(answers)
    order = site.order(command=("sleep", "600"), devices=site.backend.inventory()[:1])
    site.backend.start(order)
    left = site.engine.containers({LABEL: site.settings.installation, WARM: ""})
    assert len(left) == 1
    site.backend.warm.free_memory = lambda: 0
    site.backend.remove_orphans(lambda: {order.lease_id})
    assert [*ids(site)] == [order.lease_id]
