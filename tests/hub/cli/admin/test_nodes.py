"""``carrel node`` on a state folder: how values are refused, and what is listed."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.config.settings import EngineKind, Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.store import open_store

from ...doubles import device
from .invocation import carrel, refusal

NODE = '[docker]\naddress = "10.1.2.3"\n[[nodes]]\nname = "gpu1"\ndocker_host = "unix:///x"\n'


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    folder = StateFolder.at(tmp_path)
    folder.create()
    Settings(engine=EngineKind.DOCKER, internal_ip="10.1.2.3").save(folder)
    with closing(open_store(folder.database)) as store:
        store.sync_devices("left-1", [device(0, node="left-1")])
    return folder


def test_machines_of_the_file_and_of_the_pool_are_listed(state: StateFolder) -> None:
    state.site_file.write_text(NODE)
    found = json.loads(carrel("node", "list", "--json", "--state", str(state.root)))
    assert found == [
        {"name": "gpu1", "docker_host": "unix:///x", "devices": 0, "drained": False},
        {"name": "left-1", "docker_host": "", "devices": 1, "drained": False},
        {"name": "local", "docker_host": "", "devices": 0, "drained": False},
    ]
    lines = carrel("node", "list", "--state", str(state.root)).splitlines()
    assert [line.split()[0] for line in lines] == ["NODE", "gpu1", "left-1", "local"]
    assert lines[2].endswith("left")


def test_a_value_that_is_not_valid_is_refused_with_what_is_wrong(state: StateFolder) -> None:
    words = ("--docker-host", "http://x", "--address", "10.1.2.5", "--state", str(state.root))
    assert "docker_host: must begin with one of" in refusal("node", "add", "gpu2", *words)
    assert "name: " in refusal("node", "add", "GPU_2", *words)


def test_a_machine_that_left_is_removed(state: StateFolder) -> None:
    said = carrel("node", "remove", "left-1", "--state", str(state.root))
    assert said.startswith("left-1 leaves the pool, with its devices.")
    assert "no node left-1" in refusal("node", "remove", "left-1", "--state", str(state.root))
