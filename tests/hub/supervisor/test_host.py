"""Choice of the engine: from the site file, from this start, or from the last one."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub import plugins
from carrel.hub.config import backend
from carrel.hub.config.settings import EngineKind, Settings
from carrel.hub.config.site import SiteFile
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import Conflict, Unavailable
from carrel.hub.supervisor.down import down
from carrel.hub.supervisor.host import chosen

FIRST, SECOND = "unix:///run/first.sock", "unix:///run/second.sock"


class Ground:
    """The host setup of an engine with one running attempt."""

    def running(self) -> tuple[str, ...]:
        return ("s-1.1",)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    monkeypatch.setenv("DOCKER_HOST", FIRST)
    return found


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load_host_setup", lambda *_: Ground())


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object) -> None:
        raise Unavailable("The Docker engine on local does not answer.")

    monkeypatch.setattr(plugins, "load_host_setup", ask)


def host_of(state: StateFolder, settings: Settings) -> str:
    return backend.docker_options(settings, SiteFile.load(state)).hosts[0].url


def test_the_engine_of_the_last_start_is_found_without_its_docker_host(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen(state, Settings(), EngineKind.DOCKER).save(state)
    monkeypatch.delenv("DOCKER_HOST")
    assert host_of(state, Settings.load(state)) == FIRST
    monkeypatch.setenv("DOCKER_HOST", SECOND)
    assert host_of(state, Settings.load(state)) == FIRST


def test_the_next_start_may_name_another_one(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Settings(engine=EngineKind.DOCKER)
    first = chosen(state, stored, None)
    monkeypatch.delenv("DOCKER_HOST")
    assert chosen(state, first, None).docker_host == FIRST
    assert chosen(state, stored, None).docker_host == backend.DEFAULT_DOCKER_HOST
    state.site_file.write_text(f'[docker]\nhost = "{SECOND}"\n')
    assert host_of(state, first) == SECOND


@pytest.mark.usefixtures("busy")
def test_an_engine_with_running_work_cannot_be_changed(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = chosen(state, Settings(engine=EngineKind.DOCKER), None)
    monkeypatch.setenv("DOCKER_HOST", SECOND)
    with pytest.raises(Conflict, match=f"1 sessions or jobs run on the engine '{FIRST}'"):
        chosen(state, first, None)


@pytest.mark.usefixtures("silent")
def test_an_unreachable_engine_may_get_another_address(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Settings(engine=EngineKind.DOCKER, docker_host=FIRST)
    monkeypatch.setenv("DOCKER_HOST", SECOND)
    assert chosen(state, stored, None).docker_host == SECOND


@pytest.mark.usefixtures("silent")
def test_down_reports_an_engine_that_does_not_answer(
    state: StateFolder,
) -> None:
    Settings(engine=EngineKind.DOCKER, docker_host=FIRST).save(state)
    with pytest.raises(Unavailable) as error:
        down(state, print)
    assert "The Docker engine on local does not answer." in str(error.value)
    assert f"containers of its engine (on this machine: {FIRST}) keep running" in str(error.value)
    assert "run `carrel down` again" in str(error.value)
