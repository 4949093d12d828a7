"""The output of a job is saved in a home without overwriting anything."""

from __future__ import annotations

import errno
import os
from io import BytesIO
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, TooLarge
from carrel.hub.files.home_folders import HomeFolders
from carrel.hub.files.home_outputs import MOST_BYTES, HomeOutputs, SavedOutput
from carrel.hub.files.local import LocalFiles


@pytest.fixture
def saver(tmp_path: Path) -> HomeOutputs:
    homes = HomeFolders(root=tmp_path / "homes", disks=tmp_path / "disks")
    return HomeOutputs(LocalFiles(homes, tmp_path / "outputs"))


@pytest.fixture
def home(saver: HomeOutputs) -> Path:
    return saver.files.home("ada")


def content(name: str, data: bytes) -> SavedOutput:
    return SavedOutput(name=name, size=len(data), open=lambda: BytesIO(data))


def test_the_notebook_and_files_are_saved_once(saver: HomeOutputs, home: Path) -> None:
    found = [content("train.ipynb", b"notebook"), content("files/a/plot.png", b"png")]
    assert saver.save("ada", "j-1", found) == 2
    assert (home / "jobs/j-1/train.ipynb").read_bytes() == b"notebook"
    assert (home / "jobs/j-1/files/a/plot.png").read_bytes() == b"png"
    assert saver.save("ada", "j-1", found) == 0
    assert sorted(path.name for path in (home / "jobs/j-1").iterdir()) == ["files", "train.ipynb"]


def test_another_file_of_the_same_name_is_kept(saver: HomeOutputs, home: Path) -> None:
    saver.save("ada", "j-1", [content("train.ipynb", b"half")])
    assert saver.save("ada", "j-1", [content("train.ipynb", b"whole")]) == 1
    assert (home / "jobs/j-1/train.ipynb").read_bytes() == b"half"
    assert (home / "jobs/j-1/train-1.ipynb").read_bytes() == b"whole"


def test_nothing_is_written_through_a_link(saver: HomeOutputs, home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / "jobs").symlink_to(elsewhere)
    with pytest.raises(Conflict, match=r"jobs in your home is a file or a link, where a folder"):
        saver.save("ada", "j-1", [content("train.ipynb", b"notebook")])
    assert list(elsewhere.iterdir()) == []
    (home / "jobs").unlink()
    (home / "jobs/j-1").mkdir(parents=True)
    (home / "jobs/j-1/train.ipynb").symlink_to(elsewhere / "new")
    assert saver.save("ada", "j-1", [content("train.ipynb", b"notebook")]) == 1
    assert (home / "jobs/j-1/train-1.ipynb").read_bytes() == b"notebook"
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("way", ["jobs", "jobs/j-1", "jobs/j-1/files"])
def test_a_file_where_a_folder_is_needed_is_named_and_kept(
    saver: HomeOutputs, home: Path, way: str
) -> None:
    (home / way).parent.mkdir(parents=True, exist_ok=True)
    (home / way).write_text("mine")
    with pytest.raises(Conflict, match=f"^{way} in your home is a file"):
        saver.save("ada", "j-1", [content("files/a.txt", b"a")])
    assert (home / way).read_text() == "mine"


def test_a_folder_with_the_name_of_a_file_is_kept(saver: HomeOutputs, home: Path) -> None:
    (home / "jobs/j-1/train.ipynb").mkdir(parents=True)
    assert saver.save("ada", "j-1", [content("train.ipynb", b"notebook")]) == 1
    assert (home / "jobs/j-1/train-1.ipynb").read_bytes() == b"notebook"


def test_a_full_home_keeps_no_half_file(saver: HomeOutputs, home: Path) -> None:
    class Full(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    full = SavedOutput(name="train.ipynb", size=5, open=lambda: Full(b"12345"))
    with pytest.raises(TooLarge, match=r"Your home is full"):
        saver.save("ada", "j-1", [full])
    assert list((home / "jobs/j-1").iterdir()) == []


def test_too_much_is_refused_before_anything_is_written(saver: HomeOutputs, home: Path) -> None:
    large = SavedOutput(name="files/model.bin", size=MOST_BYTES, open=BytesIO)
    with pytest.raises(TooLarge, match=r"has 1\.0 GiB, which is too large"):
        saver.save("ada", "j-1", [content("train.ipynb", b"1"), large])
    assert not (home / "jobs").exists()
