"""The data of a course: found under one variable, and read-only."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.courses.sandbox.interface import CellStatus, CellStep, SandboxLimits, SandboxSettings
from carrel.courses.sandbox.local.engine import create
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.spawners.common.course_links import course_data
from carrel.spawners.docker.containers import home_mounts

READ = "import os\nopen(os.environ['CARREL_COURSE_DATA'] + '/points.csv').read()"
WRITE = "open(os.environ['CARREL_COURSE_DATA'] + '/points.csv', 'w')"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    data = StateFolder.at(tmp_path).course_data("cs101")
    data.mkdir(parents=True)
    (data / "points.csv").write_text("1,2\n")
    return tmp_path


def test_submissions_read_course_data_and_cannot_write_them(state: Path) -> None:
    data = StateFolder.at(state).course_data("cs101")
    engine = create(SandboxSettings(data={"/course/cs101": data}))
    try:
        sandbox = engine.open(SandboxLimits(), {})
        steps = [CellStep(cell_id=name, source=name) for name in (READ, WRITE)]
        read, written = sandbox.run(steps)
        sandbox.close()
    finally:
        engine.close()
    assert read.outputs[0]["data"] == {"text/plain": r"'1,2\n'"}
    assert written.status is CellStatus.ERROR
    assert (data / "points.csv").read_text() == "1,2\n"


def test_local_processes_find_course_data_in_the_state_folder(state: Path) -> None:
    assert course_data(state, "cs101") == {
        "CARREL_COURSE_DATA": str(state / "courses" / "cs101" / "data")
    }
    assert course_data(state, "cs102") == {}


def test_a_container_of_another_group_has_no_such_folder(state: Path) -> None:
    settings = BackendSettings(state=state, service_url="http://127.0.0.1:1/services/carrel")
    assert home_mounts.course_data(settings, "cs101") == {"CARREL_COURSE_DATA": "/course/cs101"}
    assert home_mounts.course_data(settings, "cs102") == {}
