"""A job owns its folder while the service reads and writes there: links are not followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.courses import sample
from carrel.courses.sample import copy_into
from carrel.hub.attempts.journal import read_journal
from carrel.hub.attempts.spec import EVENTS, LOG, NOTICE, ORDER, OUTPUT, AttemptSpec
from carrel.hub.files.home_folders import HomeFolders
from carrel.hub.files.local import LocalFiles
from carrel.hub.files.safe_fs import add_file, give_folder, lies_in, write_into
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import JobSpec
from carrel.spawners.common import notice_file

EVENT = '{"seq": 1, "at": 1.0, "kind": "ended", "data": {}}\n'
NOTE = StopNotice(kind=NoticeKind.URGENT, message="Go.", given_at=1.0, stops_at=2.0, group="cs101")


SAMPLES = Path(sample.__file__).parent


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the host that only the service may read and write."""
    path = tmp_path / "passwd"
    path.write_text(EVENT)
    return path


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    homes = HomeFolders(root=tmp_path / "homes", disks=tmp_path / "disks")
    return LocalFiles(homes=homes, outputs=tmp_path / "outputs")


@pytest.fixture
def folder(files: LocalFiles) -> Path:
    return files.attempt_folder("j-1", 1)


def order() -> AttemptSpec:
    return AttemptSpec(
        lease_id="j-1.1",
        request_id="j-1",
        epoch=1,
        token="the-token",
        service_url="http://127.0.0.1:1",
        input_path="",
        home="",
        devices=(),
        device_ids=(),
        job=JobSpec(notebook_name=""),
    )


@pytest.mark.parametrize("name", [OUTPUT, LOG])
def test_the_target_of_a_link_is_not_read(
    files: LocalFiles, folder: Path, secret: Path, name: str
) -> None:
    (folder / name).symlink_to(secret)
    assert files.output("j-1", 1) is None
    assert files.log("j-1", 1) == b""


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_journal_is_a_file_or_empty(folder: Path, secret: Path, kind: str) -> None:
    path = folder / EVENTS
    match kind:
        case "link":
            path.symlink_to(secret)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
    assert read_journal(path) == ()


@pytest.mark.parametrize("name", [ORDER, f"{ORDER}.new"])
def test_an_order_is_written_over_a_link_and_not_through_it(
    folder: Path, secret: Path, name: str
) -> None:
    (folder / name).symlink_to(secret)
    order().write(folder)
    assert secret.read_text() == EVENT
    assert not (folder / ORDER).is_symlink()
    assert AttemptSpec.read(folder) == order()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_notice_is_written_over_whatever_lies_there(
    folder: Path, secret: Path, kind: str
) -> None:
    for name in (NOTICE, f"{NOTICE}.new"):
        if kind == "link":
            (folder / name).symlink_to(secret)
        else:
            os.mkfifo(folder / name)
    assert notice_file.write(folder, NOTE)
    assert not notice_file.write(folder, NOTE)
    assert secret.read_text() == EVENT
    assert "Go." in (folder / NOTICE).read_text()


def test_nothing_is_written_into_a_folder_that_is_a_link(tmp_path: Path, folder: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        write_into(link, "note", "text")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        give_folder(link, (os.geteuid(), os.getegid()))
    assert list(folder.iterdir()) == []


def test_a_sample_is_copied_through_no_link_and_over_nothing(tmp_path: Path) -> None:
    sample = "digits.ipynb"
    homes = [tmp_path / name for name in ("empty", "linked", "worked")]
    for home in homes:
        home.mkdir()
    (homes[1] / sample).symlink_to(tmp_path / "elsewhere")
    (homes[2] / sample).write_text("my own work")
    for home in homes:
        copy_into(home)
    assert (homes[0] / sample).read_bytes() == (SAMPLES / sample).read_bytes()
    assert not (tmp_path / "elsewhere").exists()
    assert (homes[2] / sample).read_text() == "my own work"


def test_a_file_in_a_folder_is_copied_through_no_link_and_over_nothing(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    homes = [tmp_path / name for name in ("empty", "linked", "worked", "a file")]
    for each in (*homes, elsewhere):
        each.mkdir()
    (homes[1] / "course").symlink_to(elsewhere)
    (homes[2] / "course" / "unit").mkdir(parents=True)
    (homes[2] / "course" / "unit" / "a.md").write_text("my own work")
    (homes[3] / "course").write_text("my own work")
    for home in homes:
        for name in ("course/unit/a.md", "course/unit/b.md"):
            add_file(home, name, b"sample")
    assert (homes[0] / "course/unit/a.md").read_text() == "sample"
    assert list(elsewhere.iterdir()) == []
    assert (homes[2] / "course/unit/a.md").read_text() == "my own work"
    assert (homes[2] / "course/unit/b.md").read_text() == "sample"
    assert (homes[3] / "course").read_text() == "my own work"


def test_a_failed_write_leaves_no_file(folder: Path) -> None:
    (folder / "note").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_into(folder, "note", "text")
    assert [each.name for each in folder.iterdir()] == ["note"]


def test_a_dangling_link_still_exists(folder: Path) -> None:
    (folder / "claim").symlink_to("/nowhere")
    assert lies_in(folder, "claim")
    assert not lies_in(folder, "another")


def test_events_that_are_nested_too_deeply_are_left_out(folder: Path) -> None:
    def line(seq: int, levels: int) -> str:
        data = '{"a":' * levels + "1" + "}" * levels
        return f'{{"seq": {seq}, "at": 1.0, "kind": "progress", "data": {data}}}\n'

    path = folder / "events.jsonl"
    path.write_text("[]\n" + line(1, 900) + line(2, 150) + line(3, 100_000) + line(4, 3))
    assert [event.seq for event in read_journal(path)] == [4]
