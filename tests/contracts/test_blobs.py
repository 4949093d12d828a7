"""Contract of the blob store, and its files on the disk."""

from __future__ import annotations

import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carrel.courses.files.blobs import FolderBlobs
from carrel.courses.model.interfaces import Blobs
from carrel.hub.errors import NotFound, Unavailable

from ..stores import TemporaryBlobs

HELLO = hashlib.sha256(b"hello").hexdigest()


@pytest.fixture(params=["folder", "temporary"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return FolderBlobs(tmp_path / "blobs") if request.param == "folder" else TemporaryBlobs()


def test_stored_content_is_found_by_its_hash(blobs: Blobs) -> None:
    assert blobs.put(b"hello") == HELLO
    assert blobs.put(b"hello") == HELLO
    with blobs.open(HELLO) as file:
        assert file.read() == b"hello"


@pytest.mark.parametrize("name", ["0" * 64, "", "../../etc/passwd", HELLO.upper(), HELLO + "/x"])
def test_unknown_hashes_are_not_found(blobs: Blobs, name: str) -> None:
    blobs.put(b"hello")
    with pytest.raises(NotFound):
        blobs.open(name)


def test_equal_and_different_blobs_are_stored_concurrently(blobs: Blobs) -> None:
    contents = [str(number % 7).encode() for number in range(70)]
    with ThreadPoolExecutor(8) as pool:
        digests = list(pool.map(blobs.put, contents))
    for digest, content in zip(digests, contents, strict=True):
        with blobs.open(digest) as file:
            assert file.read() == content


def test_files_are_private_and_no_temporary_files_remain(tmp_path: Path) -> None:
    FolderBlobs(tmp_path / "blobs").put(b"hello")
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert {path.is_dir(): mode for path, mode in found.items()} == {True: 0o700, False: 0o400}
    assert [
        path.relative_to(tmp_path / "blobs").as_posix() for path in found if path.is_file()
    ] == [f"{HELLO[:2]}/{HELLO[2:]}"]


def test_content_is_synced_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append(f"{kind} to disk")
        fsync(descriptor)

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append("named")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    blobs = FolderBlobs(tmp_path / "blobs")
    blobs.put(b"hello")
    assert steps == ["folder to disk", "file to disk", "named", "folder to disk"]
    blobs.put(b"world")
    assert steps[4:] == ["file to disk", "named", "folder to disk"]


def test_a_full_disk_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    blobs = FolderBlobs(tmp_path)
    blobs.put(b"hello")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="No space left on device"):
        blobs.put(b"world")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [HELLO[2:]]
