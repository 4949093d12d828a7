"""The logs of a job are copied for TensorBoard and MLflow, and again when they have grown."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrel.extensions.dashboards import job_logs
from carrel.extensions.dashboards.job_logs import copy_logs, database_of
from carrel.extensions.dashboards.log_viewer_handlers import missing_viewer
from carrel.hub.client import Client
from carrel.hub.errors import Conflict, Forbidden, NotFound, TooLarge
from carrel.hub.files.log_viewers import MLFLOW, TENSORBOARD

from ...fake_service import FakeService

EVENTS = "runs/a/events.out.tfevents.17.host"


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as made:
        made.add("j-1", state="running")
        made.files["j-1"] = {EVENTS: b"first", "result.csv": b"1", "runs/a/model.bin": b"2"}
        yield made


def copied(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_event_files_are_copied_again_when_they_have_grown(
    service: FakeService, tmp_path: Path
) -> None:
    client = Client(service.url, "t")
    copy_logs(client, "j-1", TENSORBOARD, tmp_path)
    assert copied(tmp_path) == {EVENTS: b"first"}
    copy_logs(client, "j-1", TENSORBOARD, tmp_path)
    service.files["j-1"][EVENTS] = b"first and second"
    copy_logs(client, "j-1", TENSORBOARD, tmp_path)
    assert copied(tmp_path) == {EVENTS: b"first and second"}
    assert len([path for _, path, _ in service.calls if path.endswith("host")]) == 2


def test_what_cannot_be_opened_is_refused(
    service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(service.url, "t")
    service.add("j-2", state="running")
    with pytest.raises(NotFound, match="j-2 has written no TensorBoard logs"):
        copy_logs(client, "j-2", TENSORBOARD, tmp_path)
    monkeypatch.setattr(job_logs, "MOST_BYTES", 4)
    with pytest.raises(TooLarge, match="The TensorBoard logs of j-1 are larger than"):
        copy_logs(client, "j-1", TENSORBOARD, tmp_path)
    service.change("j-1", owner="ben")
    with pytest.raises(Forbidden, match="j-1 is not a job of yours"):
        copy_logs(client, "j-1", TENSORBOARD, tmp_path)
    assert copied(tmp_path) == {}


def database(path: Path, runs: int) -> bytes:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("create table runs (id integer)")
        made.executemany("insert into runs values (?)", [(n,) for n in range(runs)])
    return path.read_bytes()


def test_an_open_database_shows_what_the_job_has_logged_since(
    service: FakeService, tmp_path: Path
) -> None:
    client = Client(service.url, "t")
    service.files["j-1"] = {"out/mlflow.db": database(tmp_path / "made", 1)}
    logs = tmp_path / "logs"
    copy_logs(client, "j-1", MLFLOW, logs)
    with closing(sqlite3.connect(database_of(logs))) as viewer:
        assert viewer.execute("select count(*) from runs").fetchone() == (1,)
        service.files["j-1"] = {"out/mlflow.db": database(tmp_path / "made", 20)}
        copy_logs(client, "j-1", MLFLOW, logs)
        assert viewer.execute("select count(*) from runs").fetchone() == (20,)
    assert [path.name for path in logs.iterdir()] == ["mlflow.db"]


def test_half_a_database_is_refused_and_what_was_shown_stays(
    service: FakeService, tmp_path: Path
) -> None:
    client = Client(service.url, "t")
    whole = database(tmp_path / "made", 2000)
    logs = tmp_path / "logs"
    service.files["j-1"] = {"mlflow.db": whole}
    copy_logs(client, "j-1", MLFLOW, logs)
    service.files["j-1"] = {"mlflow.db": whole[: len(whole) // 2]}
    with pytest.raises(Conflict, match=r"mlflow\.db of j-1 is no complete database"):
        copy_logs(client, "j-1", MLFLOW, logs)
    with closing(sqlite3.connect(database_of(logs))) as viewer:
        assert viewer.execute("select count(*) from runs").fetchone() == (2000,)


def test_a_session_without_a_viewer_says_how_to_get_it(tmp_path: Path) -> None:
    begin = "TensorBoard is not installed in this session. "
    writable, of_an_image = (missing_viewer(TENSORBOARD, at) for at in (tmp_path, Path("/no")))
    assert writable.startswith(f"{begin}Run “pip install tensorboard” in a terminal")
    assert of_an_image.startswith(f"{begin}Packages cannot be added to it: start the session with")
