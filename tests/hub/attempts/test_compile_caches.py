"""A lower limit of the site applies to what was kept before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.hub.attempts.compile_caches import OwnerCompileCaches


@pytest.mark.parametrize(
    ("most_bytes", "left"),
    [(0, []), (15, ["student1/b.cache", "student2/c.cache"]), (100, None)],
)
def test_files_of_an_earlier_limit_are_dropped_at_the_start(
    tmp_path: Path, most_bytes: int, left: list[str] | None
) -> None:
    names = ["student1/a.cache", "student1/b.cache", "student2/c.cache"]
    for at, name in enumerate(names):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
        os.utime(path, (at, at))
    (tmp_path / "student1" / ".d.cache.part").write_bytes(b"x" * 10)  # of a killed service
    (tmp_path / "file").write_bytes(b"x")
    caches = OwnerCompileCaches.of(tmp_path, most_bytes, None)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert found == (names if left is None else left)
    folders = {name.partition("/")[0] for name in found}
    assert {path.name for path in tmp_path.iterdir()} == {"file", *folders}
    caches.clear("student1")
    assert not (tmp_path / "student1").exists()


def test_a_site_that_keeps_nothing_has_nothing_to_clear(tmp_path: Path) -> None:
    caches = OwnerCompileCaches.of(tmp_path / "compile-caches", 0, None)
    caches.clear("student1")
    assert caches.kept("student1") == ()
    assert not (tmp_path / "compile-caches").exists()
