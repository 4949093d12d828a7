"""Case 28: uploads with forbidden entries are refused before they are unpacked."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable

import pytest

from carrel.hub.admission import archive as admission_archive
from carrel.hub.errors import InvalidInput, Refused, TooLarge

from ...memory import peak_memory
from .archives import member, packed, text


def test_regular_files_and_folders_are_accepted() -> None:
    content = bytes(range(256)) * 4000
    data = packed(
        member("src", tarfile.DIRTYPE),
        member("src/train.py", size=300_000),
        member("./" + "n" * 150 + "/data.bin", size=len(content)),
        content=content,
    )
    assert admission_archive.read_archive(text(data)) == data


BAD: dict[str, tuple[Callable[[], str], type[Refused], str]] = {
    "no base64": (lambda: "***", InvalidInput, "not base64"),
    "no gzip": (lambda: text(b"hello"), InvalidInput, "cannot be read"),
    "no tar": (lambda: text(gzip.compress(b"x" * 600)), InvalidInput, "cannot be read"),
    "cut short": (
        lambda: text(packed(member("a", size=9), content=b"1" * 9)[:-30]),
        InvalidInput,
        "cannot be read",
    ),
    "a symlink": (
        lambda: text(packed(member("a", tarfile.SYMTYPE, to="/etc"))),
        InvalidInput,
        "link",
    ),
    "a hard link": (
        lambda: text(packed(member("a", tarfile.LNKTYPE, to="b"))),
        InvalidInput,
        "link",
    ),
    "a pipe": (lambda: text(packed(member("a", tarfile.FIFOTYPE))), InvalidInput, "neither a"),
    "a device": (lambda: text(packed(member("a", tarfile.CHRTYPE))), InvalidInput, "neither a"),
    "a parent": (lambda: text(packed(member("../a"))), InvalidInput, "leads out"),
    "a parent within": (lambda: text(packed(member("a/../../b"))), InvalidInput, "leads out"),
    "an absolute name": (lambda: text(packed(member("/etc/passwd"))), InvalidInput, "leads out"),
    "a long name": (lambda: text(packed(member("a" * 2000))), InvalidInput, "2,000 bytes"),
    "too many entries": (
        lambda: text(packed(*(member(str(n)) for n in range(admission_archive.MAX_ENTRIES + 1)))),
        TooLarge,
        "10,000 entries",
    ),
    "too large packed": (
        lambda: "A" * (admission_archive.MAX_ARCHIVE_BYTES // 3 * 4 + 8),
        TooLarge,
        "32 MiB",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_case_28_other_entries_are_refused(case: str) -> None:
    make, kind, words = BAD[case]
    with pytest.raises(kind, match=words) as refused:
        admission_archive.read_archive(make())
    assert "no links" in refused.value.accepted


def test_case_28_a_zip_bomb_is_refused_by_its_header() -> None:
    bomb = member("zeros", size=2 << 30)
    data = gzip.compress(bomb.tobuf() + bytes(1 << 20))
    with pytest.raises(TooLarge, match="1 GiB"):
        admission_archive.read_archive(text(data))


def test_a_header_that_is_itself_a_bomb_is_not_read() -> None:
    header = member("pax", tarfile.XHDTYPE, size=512 << 20)
    with pytest.raises(InvalidInput, match="cannot be read"):
        admission_archive.read_archive(text(gzip.compress(header.tobuf() + bytes(1 << 20))))


def pax(records: int) -> bytes:
    """A header with that many records."""
    content = b"".join(f"16 k{n:06}={n:05}\n".encode() for n in range(records))
    header = member("pax", tarfile.XHDTYPE, size=len(content)).tobuf(format=tarfile.USTAR_FORMAT)
    return header + content + bytes(-len(content) % 512)


def test_headers_are_not_kept_in_memory() -> None:
    entry = pax(3000) + member("a").tobuf()
    data = gzip.compress(entry * 600 + bytes(1024), 1)
    with peak_memory() as peak:
        admission_archive.check_archive(data)
    assert peak() < 8 << 20


def test_the_headers_of_all_entries_together_are_bounded() -> None:
    entry = pax(3000) + member("a").tobuf()
    data = gzip.compress(entry * 800 + bytes(1024), 1)
    with pytest.raises(InvalidInput, match="headers are too long"):
        admission_archive.check_archive(data)


def test_a_chain_of_headers_is_refused() -> None:
    data = gzip.compress(pax(1) * 3000 + member("a").tobuf() + bytes(1024))
    with pytest.raises(InvalidInput, match="cannot be read"):
        admission_archive.check_archive(data)
