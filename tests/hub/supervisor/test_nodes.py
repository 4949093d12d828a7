"""Machines join and leave the pool: what is checked, written and restarted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from carrel.hub.config.settings import EngineKind, Settings
from carrel.hub.config.site import NodeTable, SiteFile
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import CarrelError, Conflict, InvalidInput, NotFound, Refused, Unavailable
from carrel.hub.interfaces.store import Store
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.records.diagnostics import Finding, Severity
from carrel.hub.scheduling.model.snapshot import Mark, MarkKind
from carrel.hub.store import open_store
from carrel.hub.supervisor.lock import locked
from carrel.hub.supervisor.nodes import Nodes
from carrel.hub.supervisor.processes import ProcessId

from ..doubles import device

HERE = "10.1.2.3"
GPU2 = NodeTable(name="gpu2", docker_host="ssh://carrel@gpu2", address="10.1.2.5")
SITE = f'[docker]\naddress = "{HERE}"\n'
NO_IMAGE = Finding(
    subject="gpu2: image", verdict=Severity.MISSING, what="It has no image.", mend="Load one."
)
SLOW_CLOCK = Finding(subject="gpu2: clock", verdict=Severity.WARNING, what="Its clock differs.")
ELSEWHERE = Finding(subject="image", verdict=Severity.MISSING, what="Not here.")


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    folder = StateFolder.at(tmp_path / "state")
    folder.create()
    Settings(engine=EngineKind.DOCKER, internal_ip=HERE).save(folder)
    folder.site_file.write_text(SITE)
    return folder


@pytest.fixture
def store(state: StateFolder) -> Iterator[Store]:
    with closing(open_store(state.database)) as opened:
        yield opened


def nodes(
    state: StateFolder, store: Store, *found: Finding, cleared: list[str] | None = None
) -> Nodes:
    """``cleared`` collects the machines that are cleared; without it their engines are silent."""

    def checks(site: SiteFile) -> tuple[Finding, ...]:
        assert [each.name for each in site.nodes] == ["gpu2"]
        return found

    def clear(name: str) -> None:
        if cleared is None:
            raise Unavailable("Its engine does not answer.")
        cleared.append(name)

    return Nodes(state=state, store=store, checks=checks, clear=clear, who="cli:root")


def listed(state: StateFolder) -> list[str]:
    return [each.name for each in SiteFile.load(state).nodes]


def actions(store: Store) -> list[tuple[AuditAction, str]]:
    return [(each.action, each.target) for each in store.changes(ChangeFilter())]


def test_a_machine_is_checked_and_joins(state: StateFolder, store: Store) -> None:
    said = nodes(state, store, SLOW_CLOCK, ELSEWHERE).add(GPU2)
    assert said[:2] == (
        "Its clock differs.",
        "gpu2 joins the pool; its devices are listed within a minute.",
    )
    assert listed(state) == ["gpu2"]
    assert state.site_file.read_text().startswith(SITE)
    assert actions(store) == [(AuditAction.NODE_ADD, "gpu2")]


def test_a_preview_changes_nothing(state: StateFolder, store: Store) -> None:
    assert nodes(state, store).add(GPU2, dry_run=True)[0].startswith("gpu2 joins")
    assert (listed(state), actions(store)) == ([], [])


def test_a_machine_that_lacks_something_does_not_join(state: StateFolder, store: Store) -> None:
    with pytest.raises(Refused, match=r"gpu2 cannot join\. It has no image\.") as refused:
        nodes(state, store, NO_IMAGE).add(GPU2)
    assert refused.value.accepted == "Load one."
    assert listed(state) == []


@pytest.mark.parametrize(
    ("settings", "file", "refused"),
    [
        (Settings(), SITE, Conflict("The local engine has one node")),
        (
            Settings(engine=EngineKind.SLURM),
            SITE,
            Conflict("The nodes of a cluster belong to Slurm"),
        ),
        (
            Settings(engine=EngineKind.DOCKER, internal_ip="10.9.9.9"),
            SITE,
            Conflict("does not listen on 10.1.2.3"),
        ),
        (
            Settings(engine=EngineKind.DOCKER, internal_ip=HERE),
            "",
            InvalidInput("set address below [docker]"),
        ),
        (
            Settings(engine=EngineKind.DOCKER, internal_ip=HERE),
            SITE + '[[nodes]]\nname = "gpu2"\ndocker_host = "unix:///x"\n',
            InvalidInput("several nodes have the name gpu2"),
        ),
    ],
    ids=["local engine", "cluster", "another address", "no address", "name taken"],
)
def test_a_machine_that_cannot_be_added(
    state: StateFolder, store: Store, settings: Settings, file: str, refused: CarrelError
) -> None:
    settings.save(state)
    state.site_file.write_text(file)
    with pytest.raises(type(refused), match=re.escape(refused.message)):
        nodes(state, store).add(GPU2)
    assert state.site_file.read_text() == file


def test_the_file_keeps_its_place_its_mode_and_its_owner(
    state: StateFolder, store: Store, tmp_path: Path
) -> None:
    """The processes may belong to another account than the one that adds a machine."""
    managed = tmp_path / "managed.toml"
    managed.write_text(SITE)
    managed.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(managed, 1000, 1000)
    before = managed.stat()
    state.site_file.unlink()
    state.site_file.symlink_to(managed)
    nodes(state, store).add(GPU2)
    after = managed.stat()
    assert state.site_file.readlink() == managed
    assert listed(state) == ["gpu2"]
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_machines_that_are_checked_at_the_same_time_all_join(
    state: StateFolder, store: Store
) -> None:
    gpu3 = NodeTable(name="gpu3", docker_host="ssh://carrel@gpu3", address="10.1.2.6")

    def checks(site: SiteFile) -> tuple[Finding, ...]:
        if [each.name for each in site.nodes] == ["gpu2"]:  # the checks take seconds
            service.add(gpu3)
        return ()

    service = Nodes(state=state, store=store, checks=checks, clear=lambda _: None, who="cli:root")
    service.add(GPU2)
    assert listed(state) == ["gpu3", "gpu2"]


def test_only_a_drained_machine_is_removed_with_its_devices(
    state: StateFolder, store: Store
) -> None:
    cleared: list[str] = []
    service = nodes(state, store, cleared=cleared)
    service.add(GPU2)
    store.sync_devices("gpu2", [device(0)])
    with pytest.raises(Conflict, match="gpu2 is not drained"):
        service.remove("gpu2")
    store.put_mark(Mark(target="gpu2", kind=MarkKind.DRAIN, since=1.0, by="root"))
    service.remove("gpu2", dry_run=True)
    assert (listed(state), cleared) == (["gpu2"], [])
    service.remove("gpu2")
    assert cleared == ["gpu2"]
    assert (listed(state), store.nodes(), store.devices(), store.marks()) == ([], (), (), ())
    assert state.site_file.read_text() == SITE
    assert actions(store)[0] == (AuditAction.NODE_REMOVE, "gpu2")


def test_a_machine_whose_engine_is_silent_is_removed_and_keeps_what_is_there(
    state: StateFolder, store: Store
) -> None:
    service = nodes(state, store)
    service.add(GPU2)
    assert service.remove("gpu2")[-1] == (
        "Networks and firewall rules of Carrel stay on gpu2: Its engine does not answer."
    )
    assert listed(state) == []


def test_a_machine_that_has_left_the_file_before_is_removed_from_the_pool(
    state: StateFolder, store: Store
) -> None:
    store.sync_devices("gpu3", [device(0)])
    nodes(state, store).remove("gpu3")
    assert store.devices() == ()


def test_this_machine_and_unknown_ones_are_not_removed(state: StateFolder, store: Store) -> None:
    with pytest.raises(Conflict, match="This machine cannot be removed"):
        nodes(state, store).remove("local")
    with pytest.raises(NotFound, match="There is no node gpu9"):
        nodes(state, store).remove("gpu9")


@contextmanager
def running(state: StateFolder) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Processes in the place of those of an installation that is up."""
    sleep = [sys.executable, "-c", "import signal; signal.pause()"]
    with locked(state):
        started = {name: subprocess.Popen(sleep) for name in ("proxy", "hub", "service")}
        for name, process in started.items():
            identity = ProcessId.of(process.pid)
            assert identity is not None
            identity.save(state.run / f"{name}.json")
        try:
            yield started
        finally:
            for process in started.values():
                process.kill()
                process.wait()


def test_the_processes_that_read_the_file_end_so_that_they_are_started_again(
    state: StateFolder, store: Store
) -> None:
    with running(state) as processes:
        nodes(state, store).add(GPU2)
        assert processes["proxy"].poll() is None
        assert {processes[name].wait(10) for name in ("hub", "service")} == {-15}


def test_a_machine_that_was_removed_with_an_editor_leaves_the_running_service_as_well(
    state: StateFolder, store: Store
) -> None:
    """It would list the devices again, without the drain."""
    store.sync_devices("gpu3", [device(0)])
    with running(state) as processes:
        nodes(state, store).remove("gpu3")
        assert {processes[name].poll() for name in ("hub", "service")} == {-15}
    assert store.nodes() == ()
