"""Archives of working folders, and file names of outputs."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from carrel.hub.client import job_builder
from carrel.hub.client.work_archive import add_inputs, collect, pack, safe_target
from carrel.hub.errors import InvalidInput, TooLarge
from carrel.hub.schemas import parsers


def fill(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_ignored_files_are_not_uploaded(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "data/big.bin", "data/small.csv", "a/b/x.log", "a/keep.log",
         ".git/config", "__pycache__/x.pyc", "venv/bin/python")  # fmt: skip  # grouped by meaning
    (tmp_path / ".carrelignore").write_text("*.bin\n*.log\n!keep.log\n# a comment\n!venv/\n")
    (tmp_path / "link").symlink_to("/etc/passwd")
    found = collect(tmp_path)
    assert [item.name for item in found.items] == [
        "a/keep.log", "data/small.csv", "train.py", "venv/bin/python",
    ]  # fmt: skip  # grouped by meaning
    assert found.left_out == ("link",)


def test_a_byte_order_mark_hides_no_pattern_of_the_ignore_file(tmp_path: Path) -> None:
    fill(tmp_path, "secret.txt", "train.py")
    (tmp_path / ".carrelignore").write_bytes(b"\xef\xbb\xbfsecret.txt\r\n*.bin\r\n")
    assert [item.name for item in collect(tmp_path).items] == ["train.py"]


def test_files_that_macos_and_windows_add_are_not_uploaded(tmp_path: Path) -> None:
    fill(
        tmp_path,
        "a/.DS_Store",
        "a/._x.py",
        "__MACOSX/a/._x.py",
        "Thumbs.db",
        "desktop.ini",
        "a/x.py",
    )
    assert [item.name for item in collect(tmp_path).items] == ["a/x.py"]


def test_the_archive_contains_no_user_names(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "run.sh")
    (tmp_path / "run.sh").chmod(0o777)
    with tarfile.open(fileobj=io.BytesIO(pack(collect(tmp_path)))) as archive:
        entries = [(m.name, m.mode, m.uid, m.uname) for m in archive.getmembers()]
    assert entries == [("run.sh", 0o755, 0, ""), ("train.py", 0o644, 0, "")]


def test_inputs_with_the_same_name_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, "one/data.csv", "two/data.csv", "work/train.py")
    found = add_inputs(collect(tmp_path / "work"), [tmp_path / "one/data.csv"])
    assert [item.name for item in found.items] == ["train.py", "data.csv"]
    with pytest.raises(InvalidInput, match="has the same name as"):
        add_inputs(found, [tmp_path / "two/data.csv"])
    with pytest.raises(InvalidInput, match="is not a file"):
        add_inputs(found, [tmp_path / "one"])


def test_too_many_files_are_refused_before_they_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.hub.client.work_archive.MAX_ENTRIES", 1)
    fill(tmp_path, "a", "b")
    with pytest.raises(TooLarge, match="more than a job can upload"):
        collect(tmp_path)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a\0b", "out/x", "."])
def test_no_file_of_a_job_is_written_outside_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    if name == ".":
        name = "../results-sibling/x"
    with pytest.raises(InvalidInput):
        safe_target(folder, name)
    assert safe_target(folder, "plots/loss.png") == folder / "plots" / "loss.png"


@pytest.mark.parametrize("name", ["a\\b", "a\\..\\x", "a\nb"])
def test_backslashes_and_line_breaks_are_ordinary_characters_of_a_name(
    tmp_path: Path, name: str
) -> None:
    assert safe_target(tmp_path, name) == tmp_path / name


def test_a_backslash_separates_folders_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sep", "\\")
    with pytest.raises(InvalidInput):
        safe_target(tmp_path, "a\\..\\x")


def test_a_folder_of_the_home_is_referenced_and_any_other_uploaded(tmp_path: Path) -> None:
    home = tmp_path / "home"
    fill(home, "project/train.py")
    here = job_builder.working_folder(home / "project", home=home, upload=False, needed=True)
    assert here.fields == {"workdir": "project"}
    assert job_builder.working_folder(home, home=home, upload=False, needed=True).fields == {}
    with pytest.raises(InvalidInput, match="--upload"):
        job_builder.working_folder(tmp_path, home=home, upload=False, needed=True)
    with pytest.raises(InvalidInput, match="Omit"):
        job_builder.working_folder(home, home=home, upload=True, workdir="project")
    assert "archive" in job_builder.working_folder(home, home=None, upload=True).fields


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 * 2**30), ("8G", 8 * 2**30), ("8GB", 8 * 10**9), ("1.5 gib", 3 * 2**29)],
)
def test_memory_is_written_in_several_ways(text: str, size: int) -> None:
    assert parsers.memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "8", "much", "-1GiB", "0GiB", "8 PiB"])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput, match="8GiB"):
        parsers.memory_bytes(text)
