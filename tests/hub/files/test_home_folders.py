"""Homes with a size limit: real file systems on loop devices."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.files.home_folders import HomeFolders, release

from ...requirements import need

MIB = 1 << 20
SIZE = 64 * MIB


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[HomeFolders]:
    able = os.geteuid() == 0 and Path("/dev/loop-control").exists() and shutil.which("mount")
    need("loop", able, "homes with a size need root and loop devices")
    found = HomeFolders(
        root=tmp_path / "homes", disks=tmp_path / "disks", owner=(1000, 1000), size=SIZE
    )
    yield found
    release(found.root)


def test_a_home_without_a_size_is_a_folder(tmp_path: Path) -> None:
    homes = HomeFolders(root=tmp_path / "homes", disks=tmp_path / "disks")
    assert homes.ready("student1") == tmp_path / "homes" / "student1"
    assert homes.use("student1") is None
    assert not (tmp_path / "disks").exists()


@pytest.mark.parametrize(
    ("broken", "said"), [("file", "is not a folder"), ("link", "is a link to nowhere, which does")]
)
def test_a_home_that_is_no_folder_is_described(tmp_path: Path, broken: str, said: str) -> None:
    homes = HomeFolders(root=tmp_path / "homes", disks=tmp_path / "disks")
    homes.root.mkdir()
    if broken == "file":
        (homes.root / "student1").write_text("")
    else:
        (homes.root / "student1").symlink_to("nowhere")
    with pytest.raises(BackendFailed, match=said):
        homes.ready("student1")


def test_the_limit_holds_for_each_home(homes: HomeFolders) -> None:
    one, two = homes.ready("student1"), homes.ready("student2")
    assert (one.stat().st_uid, one.stat().st_mode & 0o777) == (1000, 0o700)

    with pytest.raises(OSError, match="No space") as raised:
        (one / "big").write_bytes(bytes(2 * SIZE))
    assert raised.value.errno == errno.ENOSPC

    use = homes.use("student1")
    assert use is not None
    assert use.full
    assert 0.95 < use.share <= 1.0
    other = homes.use("student2")
    assert other is not None
    assert not other.full
    (two / "small").write_bytes(bytes(MIB))


def test_files_survive_unmounting_and_growing(homes: HomeFolders) -> None:
    (homes.ready("student1") / "work").write_text("of a term")
    release(homes.root)
    assert not (homes.root / "student1" / "work").exists()

    larger = HomeFolders(root=homes.root, disks=homes.disks, owner=homes.owner, size=2 * SIZE)
    assert (larger.ready("student1") / "work").read_text() == "of a term"
    use = larger.use("student1")
    assert use is not None
    assert use.size > 1.5 * SIZE


def test_simultaneous_calls_mount_a_home_once(homes: HomeFolders) -> None:
    started = threading.Barrier(4)

    def see_to_it() -> None:
        started.wait()
        homes.ready("student1")

    threads = [threading.Thread(target=see_to_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mounts = Path("/proc/self/mountinfo").read_text()
    assert mounts.count(f" {homes.root / 'student1'} ") == 1


def test_files_from_before_the_limit_are_not_hidden(homes: HomeFolders) -> None:
    before = homes.root / "student1"
    before.mkdir(parents=True)
    (before / "work").write_text("of a term")
    with pytest.raises(BackendFailed, match="from before homes had a limit"):
        homes.ready("student1")
    assert (before / "work").exists()
