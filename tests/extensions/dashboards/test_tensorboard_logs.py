"""The event files of a job are copied for TensorBoard, and again when they have grown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.extensions.dashboards import tensorboard_logs
from carrel.extensions.dashboards.tensorboard_logs import copy_event_files
from carrel.hub.client import Client
from carrel.hub.errors import Forbidden, NotFound, TooLarge

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
    copy_event_files(client, "j-1", tmp_path)
    assert copied(tmp_path) == {EVENTS: b"first"}
    copy_event_files(client, "j-1", tmp_path)
    service.files["j-1"][EVENTS] = b"first and second"
    copy_event_files(client, "j-1", tmp_path)
    assert copied(tmp_path) == {EVENTS: b"first and second"}
    assert len([path for _, path, _ in service.calls if path.endswith("host")]) == 2


def test_what_cannot_be_opened_is_refused(
    service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(service.url, "t")
    service.add("j-2", state="running")
    with pytest.raises(NotFound, match="j-2 has written no TensorBoard logs"):
        copy_event_files(client, "j-2", tmp_path)
    monkeypatch.setattr(tensorboard_logs, "MOST_BYTES", 4)
    with pytest.raises(TooLarge, match="The TensorBoard logs of j-1 are larger than"):
        copy_event_files(client, "j-1", tmp_path)
    service.change("j-1", owner="ben")
    with pytest.raises(Forbidden, match="j-1 is not a job of yours"):
        copy_event_files(client, "j-1", tmp_path)
    assert copied(tmp_path) == {}
