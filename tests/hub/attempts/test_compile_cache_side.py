"""An archive of compiled code is unpacked whole or not at all, and no half library is packed."""

from __future__ import annotations

import gzip
import io
import shutil
import struct
import sys
import tarfile
from pathlib import Path

import pytest

from carrel.hub.attempts import compile_cache_side as side


def archive(*members: tarfile.TarInfo) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as file:
        for member in members:
            file.addfile(member, io.BytesIO(b"x" * member.size))
    return content.getvalue()


def member(name: str, size: int = 1, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.linkname = size, kind, "/etc/passwd"
    return made


REFUSED = [
    member("../above"),
    member("a/../../above"),
    member("/absolute"),
    member("link", 0, tarfile.SYMTYPE),
    member("link", 0, tarfile.LNKTYPE),
    member("pipe", 0, tarfile.FIFOTYPE),
]


@pytest.mark.parametrize("refused", REFUSED, ids=lambda each: f"{each.name}-{each.type!r}")
def test_nothing_of_an_archive_with_a_foreign_member_is_unpacked(
    tmp_path: Path, refused: tarfile.TarInfo
) -> None:
    folder = tmp_path / "compiled"
    folder.mkdir()
    with pytest.raises(ValueError, match="damaged"):
        side.unpack(io.BytesIO(archive(member("fxgraph/a"), refused)), str(folder))
    assert [path.name for path in tmp_path.rglob("*")] == ["compiled"]


def test_nothing_of_an_archive_that_is_too_large_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert side.UNPACKED == 256 << 20
    monkeypatch.setattr(side, "UNPACKED", 10)
    assert side.unpack(io.BytesIO(archive(member("a", 5), member("b", 5))), str(tmp_path))
    with pytest.raises(ValueError, match="damaged"):
        side.unpack(io.BytesIO(archive(member("c", 5), member("d", 6))), str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_nothing_is_left_under_its_name_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: io.BufferedWriter, length: int = 0) -> None:
        target.write(b"x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        side.unpack(io.BytesIO(archive(member("fxgraph/a.so", 5))), str(tmp_path))
    assert [*tmp_path.iterdir()] == []


def test_half_of_a_library_is_not_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tmp_path / side.COMPILED
    compiled.mkdir()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(compiled))
    for name in ("torch", "torch._inductor.compile_fx"):
        monkeypatch.setitem(sys.modules, name, type(sys)(name))
    monkeypatch.setattr(sys.modules["torch"], "__version__", "1", raising=False)
    compiler = type(sys)("torch.compiler")
    monkeypatch.setattr(compiler, "save_cache_artifacts", lambda: None, raising=False)
    monkeypatch.setitem(sys.modules, "torch.compiler", compiler)
    header = b"\x7fELF\x02\x01".ljust(40, b"\0") + struct.pack("<Q", 100)
    library = header.ljust(58, b"\0") + struct.pack("<HH", 10, 2)
    whole = library.ljust(120, b"\0")
    for name, content in {
        "whole.so": whole, "half.so": whole[:-1], "start.so": whole[:20], "empty.so": b"",
    }.items():  # fmt: skip
        (compiled / name).write_bytes(content)
    side.CompileCache(str(tmp_path)).finish()
    _, content = side.read_cache(str(tmp_path / side.NEW))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as file:
        assert file.getnames() == ["whole.so"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
