"""Files of jobs are listed and read without following links out of their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.hub.errors import NotFound, TooLarge
from carrel.hub.files.home_folders import HomeFolders
from carrel.hub.files.local import MAX_DEPTH, MAX_OUTPUT_BYTES, LocalFiles


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    homes = HomeFolders(root=tmp_path / "homes", disks=tmp_path / "disks")
    return LocalFiles(homes=homes, outputs=tmp_path / "outputs")


@pytest.fixture
def left(files: LocalFiles) -> Path:
    folder = files.attempt_folder("j-a", 1) / "files"
    (folder / "plots").mkdir(parents=True)
    (folder / "plots" / "loss.png").write_bytes(b"png")
    return folder


def test_files_are_listed_and_read(files: LocalFiles, left: Path) -> None:
    found = files.files("j-a", 1)
    assert {name: size for name, (size, _) in found.files.items()} == {"plots/loss.png": 3}
    with files.open_file("j-a", 1, "plots/loss.png") as file:
        assert file.read() == b"png"


def test_only_regular_files_are_listed(files: LocalFiles, left: Path) -> None:
    (left / "link").symlink_to("/etc/passwd")
    (left / "elsewhere").symlink_to("/etc")
    os.mkfifo(left / "pipe")
    (left / os.fsdecode(b"\xff")).write_text("x")
    assert list(files.files("j-a", 1).files) == ["plots/loss.png"]
    assert files.files("j-a", 1).left_out == 4


@pytest.mark.parametrize(
    "name",
    ["", "/", ".", "..", "../log.txt", "plots/../../log.txt", "/etc/passwd", "plots//loss.png",
     "plots", "link", "elsewhere/passwd", "pipe", "a\0b", "\udcff", "no", "a/" * 99 + "b"],
)  # fmt: skip  # grouped by meaning
def test_no_name_leaves_the_folder(files: LocalFiles, left: Path, name: str) -> None:
    (left.parent / "log.txt").write_text("log")
    (left / "link").symlink_to("/etc/passwd")
    (left / "elsewhere").symlink_to("/etc")
    os.mkfifo(left / "pipe")
    with pytest.raises(NotFound):
        files.open_file("j-a", 1, name)


def test_an_output_folder_that_became_a_link_is_empty(files: LocalFiles, left: Path) -> None:
    left.rename(left.parent / "moved")
    left.symlink_to("/etc")
    assert files.files("j-a", 1).files == {}
    with pytest.raises(NotFound):
        files.open_file("j-a", 1, "passwd")


def test_a_linked_output_or_log_is_ignored(files: LocalFiles, left: Path) -> None:
    (left.parent / "output.ipynb").symlink_to("/etc/passwd")
    (left.parent / "log.txt").symlink_to("/etc/passwd")
    assert files.output("j-a", 1) is None
    assert files.log("j-a", 1) == b""


def test_an_output_without_end_is_refused_and_not_read_whole(files: LocalFiles, left: Path) -> None:
    with (left.parent / "output.ipynb").open("wb") as file:
        file.truncate(MAX_OUTPUT_BYTES + 1)  # a sparse file
    with pytest.raises(TooLarge, match=r"of j-a is larger than 128 MiB.*CARREL_OUTPUT_DIR"):
        files.output("j-a", 1)


def test_folders_may_be_deep_but_not_endless(files: LocalFiles, left: Path) -> None:
    deep = left
    for _ in range(MAX_DEPTH + 5):
        deep /= "d"
    deep.mkdir(parents=True)
    assert files.files("j-a", 1).left_out == 1


def test_a_job_without_files(files: LocalFiles) -> None:
    assert files.files("j-none", 1).files == {}
    assert not (files.outputs / "j-none").exists()
