"""Accepted and refused contents of bundles."""

from __future__ import annotations

import io
import stat
import struct
import subprocess
import unicodedata
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.courses.files import bundle
from carrel.courses.files.bundle import FileBundle, unpacked
from carrel.hub.errors import InvalidInput, TooLarge

from ...memory import peak_memory

NAMES = st.text(
    alphabet=st.sampled_from("aAbéE\u0301/.. \\\0\n~*:\u202e\ud800ß\u1e9e"), min_size=0, max_size=12
)


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def special(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (kind | 0o644) << 16
    return info


def test_files_are_sorted_by_name() -> None:
    bundle = FileBundle.of([("b/x.csv", b"1"), ("ps1.ipynb", b"{}"), ("a.py", b"")])
    assert list(bundle.files) == ["a.py", "b/x.csv", "ps1.ipynb"]
    assert bundle.size == 3


def test_names_are_normalized_to_composed_unicode() -> None:
    assert list(FileBundle.of([("e\u0301te\u0301.csv", b"")]).files) == ["été.csv"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["/etc/passwd"], "leads out of its folder"),
        (["../ps1-evil/x"], "leads out of its folder"),
        (["a/../../x"], "leads out of its folder"),
        (["..\\x"], "leads out of its folder"),
        (["C:x"], "not every system takes"),
        (["a\0b"], "hidden character U+0000"),
        (["a\nb"], "hidden character U+000A"),
        (["gpj.\u202eexe"], "hidden character U+202E (right-to-left override)"),
        (["a\u00a0"], "is odd"),
        (["\ud800"], "not Unicode text"),
        ([""], "is odd"),
        (["a//b"], "is odd"),
        (["./a"], "is odd"),
        (["a/"], "is odd"),
        (["a "], "is odd"),
        (["a."], "is odd"),
        ([".git/config"], "is reserved: graders"),
        (["ps1/.GIT/hooks/post-checkout"], "is reserved: graders"),
        (["data/nul"], "that of a device"),
        (["COM1"], "that of a device"),
        (["x" * 300], "too long"),
        (["/".join(["x" * 60] * 9)], "too long"),
        (["a", "a"], "there twice"),
        (["A.py", "a.py"], "too alike"),
        (["STRASSE", "straße"], "too alike"),
        (["\u00e9", "e\u0301"], "there twice"),
        (["a", "a/b"], "a file and a folder"),
        (["A", "a/b"], "a file and a folder"),
        (["Data/x", "data/y"], "too alike"),
        ([], "no file"),
    ],
)
def test_unsafe_and_ambiguous_names_are_refused(names: list[str], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        FileBundle.of((name, b"") for name in names)
    assert said in refused.value.message
    assert "relative names" in refused.value.accepted


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_accepted_names_stay_in_the_folder_and_do_not_collide(names: list[str]) -> None:
    try:
        bundle = FileBundle.of((name, name.encode("utf-8", "replace")) for name in names)
    except InvalidInput:
        return
    assert len({name.casefold() for name in bundle.files}) == len(names)
    for name in bundle.files:
        path = PurePosixPath(name)
        assert not path.is_absolute()
        assert not {"..", ".", ""} & set(name.split("/"))
        assert not any(each.startswith(f"{name}/") for each in bundle.files)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("a", b"x" * (bundle.MAX_FILE_BYTES + 1))], "'a' has 32 MiB"),
        ([("a", b"x" * (20 << 20)), ("b", b"x" * (20 << 20))], "32 MiB together"),
        ([(f"f{n}", b"") for n in range(bundle.MAX_FILES + 1)], "more than 500 files"),
    ],
)
def test_bundles_over_the_limits_are_refused(files: list[tuple[str, bytes]], said: str) -> None:
    with pytest.raises(TooLarge) as refused:
        FileBundle.of(files)
    assert said in refused.value.message


def test_the_hash_is_that_of_sha256sum(tmp_path: Path) -> None:
    bundle = FileBundle.of([("ps1.ipynb", b"{}"), ("data.csv", b"1,2\n")])
    for name, content in bundle.files.items():
        (tmp_path / name).write_bytes(content)
    lines = _sha256sum(*sorted(bundle.files), cwd=tmp_path)
    (tmp_path / "lines").write_text(lines)
    assert _sha256sum("lines", cwd=tmp_path).split()[0] == bundle.sha256
    assert FileBundle.of(reversed(list(bundle.files.items()))).sha256 == bundle.sha256
    assert FileBundle.of([("ps1.ipynb", b"{}")]).sha256 != bundle.sha256


def _sha256sum(*names: str, cwd: Path) -> str:
    done = subprocess.run(
        ["sha256sum", *names], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout


JUNK = ("__MACOSX/ps1/._a.py", "ps1/.DS_Store", "ps1/._a.py", "Thumbs.db", "ps1/Desktop.ini")


def test_files_that_systems_add_by_themselves_are_left_out() -> None:
    files = [("ps1/a.py", b"1"), *((name, b"junk") for name in JUNK), ("ps1/Icon\r", b"")]
    assert dict(FileBundle.of(files).files) == {"ps1/a.py": b"1"}
    with pytest.raises(InvalidInput, match="no file"):
        FileBundle.of([("__MACOSX/._a", b"")])


class TestArchives:
    @pytest.mark.parametrize(
        ("names", "said"),
        [
            (["ps1/", "ps1/a.py", *JUNK], ["ps1/a.py"]),
            (["ps1\\", "ps1\\a.py", "ps1\\data\\b.csv"], ["ps1/a.py", "ps1/data/b.csv"]),
        ],
        ids=["macOS", "PowerShell"],
    )
    def test_archives_of_other_systems_are_the_same_files(
        self, names: list[str], said: list[str]
    ) -> None:
        assert list(unpacked(zipped(*((name, b"") for name in names))).files) == said

    def test_names_in_utf8_without_its_flag_are_read_as_utf8(self) -> None:
        name = unicodedata.normalize("NFD", "übung.py")
        archive = bytearray(zipped((name, b"1")))
        archive[7] &= ~0x08
        archive[archive.rindex(b"PK\x01\x02") + 9] &= ~0x08
        assert list(unpacked(bytes(archive)).files) == ["übung.py"]

    def test_names_of_the_old_character_set_are_kept(self) -> None:
        archive = zipped(("xbung.py", b"1")).replace(b"xbung", "übung".encode("cp437"))
        assert list(unpacked(archive).files) == ["übung.py"]

    def test_the_files_of_an_archive_are_the_bundle(self) -> None:
        made = zipped(("data/", b""), ("data/x.csv", b"1"), ("ps1.ipynb", b"{}"))
        assert dict(unpacked(made).files) == {"data/x.csv": b"1", "ps1.ipynb": b"{}"}

    @pytest.mark.parametrize(
        ("archive", "said"),
        [
            (zipped((special("link", stat.S_IFLNK), b"/etc/passwd")), "holds a link"),
            (zipped((special("pipe", stat.S_IFIFO), b"")), "not a plain file"),
            (zipped(("../x", b"")), "leads out of"),
            (zipped(("../", b"")), "leads out of"),
            (zipped(("a", b""), ("A", b"")), "too alike"),
            (b"PK\x03\x04 and nothing else", "cannot be read"),
            (b"", "cannot be read"),
            (zipped(("a", b"x" * 999))[:-30], "cannot be read"),
        ],
        ids=["link", "pipe", "out", "folder", "alike", "no zip", "empty", "cut"],
    )
    def test_an_invalid_archive_is_refused(self, archive: bytes, said: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            unpacked(archive)
        assert said in refused.value.message

    def test_a_bomb_is_not_unpacked(self) -> None:
        bomb = zipped(("a", bytes(64 << 20)))
        assert len(bomb) < 1 << 20
        with pytest.raises(TooLarge):
            unpacked(bomb)

    def test_an_archive_that_lies_about_its_size_is_refused(self) -> None:
        bomb = bytearray(zipped(("a", bytes(64 << 20))))
        central = bomb.rindex(b"PK\x01\x02")
        bomb[central + 24 : central + 28] = (10).to_bytes(4, "little")
        with pytest.raises((TooLarge, InvalidInput)):
            unpacked(bytes(bomb))

    @pytest.mark.parametrize(
        ("method", "said"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")]
    )
    def test_other_compression_methods_are_refused_before_they_are_read(
        self, method: int, said: str
    ) -> None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr("unit1.ipynb", bytes(64 << 20))
        with peak_memory() as peak, pytest.raises(InvalidInput, match=f"compressed with {said}"):
            unpacked(buffer.getvalue())
        assert peak() < 4 << 20

    def test_an_encrypted_archive_is_refused(self) -> None:
        made = bytearray(zipped(("a.py", b"1")))
        made[6] |= 1
        made[made.rindex(b"PK\x01\x02") + 8] |= 1
        with pytest.raises(InvalidInput, match="encrypted"):
            unpacked(bytes(made))

    def test_a_name_that_is_not_utf8_is_refused(self) -> None:
        made = zipped(("ü.py", b"1")).replace("ü".encode(), b"\xff\xfe")
        with pytest.raises(InvalidInput, match="cannot be read"):
            unpacked(made)

    def test_the_directory_of_an_archive_is_bounded(self) -> None:
        entry = zipped(("a", b""))
        directory = entry[entry.index(b"PK\x01\x02") : entry.index(b"PK\x05\x06")] * 200_000
        end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), 0, 0)
        archive = directory + end
        with peak_memory() as peak, pytest.raises(TooLarge, match="too many entries"):
            unpacked(archive)
        assert peak() < 4 << 20

    def test_an_archive_with_too_many_entries_is_refused(self) -> None:
        with pytest.raises(TooLarge):
            unpacked(zipped(*((f"d{n}/", b"") for n in range(2 * bundle.MAX_FILES + 1))))
