"""The output of a job is copied into the home without overwriting a file."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pytest

from carrel.extensions.lab import session_place
from carrel.extensions.lab.job_output import CopiedOut, CopyIn, copy_into_home, put_beside
from carrel.extensions.lab.session_place import SessionPlace
from carrel.hub.client import OutputFile
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import RequestOut

OUTPUT = OutputFile(name="train.ipynb", content=b"executed")
JOB = RequestOut(
    id="j-1",
    kind="job",
    owner="ada",
    group="cs101",
    devices=0,
    seconds=3600,
    state="failed",
    submitted_at=0.0,
)


@dataclass
class FakeClient:
    job: RequestOut = JOB
    file: OutputFile = OUTPUT

    def request(self, request_id: str) -> RequestOut:
        assert request_id == "j-1"
        return self.job

    def output(self, request_id: str) -> OutputFile:
        return self.file


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    made = FakeClient()
    monkeypatch.setattr(session_place, "client_of", lambda: made)
    return made


def copied(root: Path) -> CopiedOut:
    return copy_into_home(SessionPlace(root=root, request_id="s-1"), CopyIn(job="j-1"))


def test_a_file_that_differs_is_kept_and_the_same_is_not_copied_again(
    tmp_path: Path, client: FakeClient
) -> None:
    (tmp_path / "train.ipynb").write_bytes(b"mine")
    assert copied(tmp_path) == CopiedOut(path="train-1.ipynb", is_new=True)
    assert copied(tmp_path) == CopiedOut(path="train-1.ipynb", is_new=False)
    client.file = replace(OUTPUT, content=b"executed further")
    assert copied(tmp_path) == CopiedOut(path="train-2.ipynb", is_new=True)
    assert (tmp_path / "train.ipynb").read_bytes() == b"mine"
    assert (tmp_path / "train-1.ipynb").read_bytes() == b"executed"


def test_it_is_copied_into_the_working_folder_if_that_is_here(
    tmp_path: Path, client: FakeClient
) -> None:
    client.job = JOB.model_copy(update={"workdir": "course/week1"})
    assert copied(tmp_path).path == "train.ipynb"
    (tmp_path / "course" / "week1").mkdir(parents=True)
    assert copied(tmp_path).path == "course/week1/train.ipynb"


@pytest.mark.parametrize("workdir", ["../elsewhere", "link"])
def test_it_is_never_written_outside_of_the_home(
    tmp_path: Path, client: FakeClient, workdir: str
) -> None:
    home = tmp_path / "home"
    for folder in (home, tmp_path / "elsewhere"):
        folder.mkdir()
    (home / "link").symlink_to(tmp_path / "elsewhere")
    client.job = JOB.model_copy(update={"workdir": workdir})
    client.file = replace(OUTPUT, name="../../train.ipynb")
    assert copied(home).path == "train.ipynb"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_and_a_folder_of_this_name_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"executed")
    (tmp_path / "train.ipynb").symlink_to("other")
    (tmp_path / "train-1.ipynb").mkdir()
    path, is_new = put_beside(tmp_path, "train.ipynb", b"executed")
    assert (path.name, is_new) == ("train-2.ipynb", True)


def test_a_full_disk_is_reported_and_leaves_no_half_a_notebook(
    tmp_path: Path, client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    class Full:
        def __init__(self, file: IO[Any]) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, _content: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda path, mode: Full(opened(path, mode)))
    with pytest.raises(InvalidInput, match="No space left on device"):
        copied(tmp_path)
    assert list(tmp_path.iterdir()) == []
