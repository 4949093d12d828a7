"""Names of files that are as long as a file system permits, or longer."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.hub.files.filenames import NAME_BYTES, draft_beside, numbered, shortened


@given(st.text(min_size=1, max_size=400), st.integers(40, NAME_BYTES))
@settings(max_examples=50)
def test_a_shortened_name_fits_and_a_short_one_stays(name: str, most: int) -> None:
    found = shortened(name, most)
    assert len(found.encode("utf-8", "surrogatepass")) <= most
    if len(name.encode("utf-8", "surrogatepass")) <= most:
        assert found == name


def test_the_suffix_stays_and_names_that_begin_alike_differ() -> None:
    names = [f"{'प्र' * 100}{end}.ipynb" for end in "abc"]
    found = {shortened(name) for name in names}
    assert len(found) == 3
    assert all(name.endswith(".ipynb") and name.startswith("प्र") for name in found)
    assert len(shortened(f"a.{'x' * 300}")) == NAME_BYTES


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, f"{'प्र' * 27}.ipynb"])
def test_a_file_with_the_longest_name_has_a_draft(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    draft = draft_beside(path)
    draft.write_bytes(b"content")
    draft.replace(path)
    assert path.read_bytes() == b"content"
    assert draft_beside(tmp_path / f"{name[:-1]}y") != draft


@pytest.mark.parametrize(
    ("name", "further"),
    [
        ("train.ipynb", ["train-1.ipynb", "train-2.ipynb"]),
        ("a.tar.gz", ["a.tar-1.gz", "a.tar-2.gz"]),
        ("README", ["README-1", "README-2"]),
        (".bashrc", [".bashrc-1", ".bashrc-2"]),
    ],
)
def test_further_names_are_numbered_before_the_suffix(name: str, further: list[str]) -> None:
    assert list(islice(numbered(name), 3)) == [name, *further]


def test_further_names_of_the_longest_name_fit_and_differ() -> None:
    found = list(islice(numbered(f"{'x' * (NAME_BYTES - 6)}.ipynb"), 4))
    assert len(set(found)) == 4
    assert max(map(len, found)) == NAME_BYTES
