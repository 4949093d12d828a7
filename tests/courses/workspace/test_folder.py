"""A student's folder: fetched, changed, fetched again, submitted."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from carrel.courses.workspace import folder as workspace_folder
from carrel.courses.workspace.folder import MARK, fetch_into, fetch_record_of, files_to_submit, read
from carrel.courses.workspace.folder_merge import Merged, merge
from carrel.hub.errors import Conflict, InvalidInput, NotFound, TooLarge
from carrel.hub.schemas.courses import ContentOut, HandOutOut


class Site:
    """A site with releases that records its calls."""

    def __init__(self, *versions: Mapping[str, bytes]) -> None:
        self.versions = list(versions)
        self.asked: list[int | None] = []
        self.name = "ps1"

    def __call__(self, version: int | None) -> HandOutOut:
        self.asked.append(version)
        number = len(self.versions) if version is None else version
        if not 0 < number <= len(self.versions):
            raise NotFound("It is not released.")
        return HandOutOut(
            course="cs101",
            assignment=self.name,
            version=number,
            released_at=1.0,
            released_by="teacher",
            sha256="",
            files=[
                ContentOut(name=name, content=base64.b64encode(content).decode())
                for name, content in self.versions[number - 1].items()
            ],
        )


def lies_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MARK
    }


def test_the_first_fetch_creates_the_folder(tmp_path: Path) -> None:
    site = Site({"ps1.py": b"todo", "data/x.csv": b"1"})
    given, notes = fetch_into(tmp_path / "ps1", site)
    assert lies_in(tmp_path / "ps1") == site.versions[0]
    assert (given.version, notes, site.asked) == (1, (), [None])
    mark = fetch_record_of(tmp_path / "ps1")
    assert mark is not None
    assert (mark.course, mark.assignment, mark.version) == ("cs101", "ps1", 1)


def test_an_unreleased_assignment_creates_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        fetch_into(tmp_path / "ps1", Site())
    assert not (tmp_path / "ps1").exists()


def test_a_new_version_never_overwrites_work(tmp_path: Path) -> None:
    site = Site({"ps1.py": b"todo", "data.csv": b"1", "old.txt": b"x"})
    folder = tmp_path / "ps1"
    fetch_into(folder, site)
    (folder / "ps1.py").write_bytes(b"my work")
    (folder / "notes.md").write_bytes(b"mine")
    site.versions.append({"ps1.py": b"todo, clearer", "data.csv": b"2"})
    given, notes = fetch_into(folder, site)
    assert given.version == 2
    assert lies_in(folder) == {
        "data.csv": b"2",
        "notes.md": b"mine",
        "ps1.py": b"todo, clearer",
        "ps1.student-copy.py": b"my work",
    }
    assert len(notes) == 1
    # The old version first, so that the site remembers the new one.
    assert site.asked == [None, 1, None]
    assert fetch_into(folder, site)[1] == ()


def test_a_file_that_is_saved_during_a_merge_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site({"ps1.py": b"todo", "old.py": b"old"})
    folder = tmp_path / "ps1"
    fetch_into(folder, site)
    site.versions.append({"ps1.py": b"todo, clearer"})
    for name in ("ps1.py", "old.py"):

        def saving(*versions: Mapping[str, bytes], name: str = name) -> Merged:
            (folder / name).write_bytes(b"saved now")
            return merge(*versions)

        monkeypatch.setattr(workspace_folder, "merge", saving)
        with pytest.raises(Conflict, match=f"{name} was saved"):
            fetch_into(folder, site)
        assert lies_in(folder)[name] == b"saved now"
        (folder / name).write_bytes(b"todo" if name == "ps1.py" else b"old")


@pytest.mark.parametrize("written", range(3))
def test_an_interruption_between_two_files_loses_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    site = Site({"data.csv": b"1", "z.csv": b"1"})
    folder = tmp_path / "ps1"
    fetch_into(folder, site)
    (folder / "data.csv").write_bytes(b"my work")
    site.versions.append({"data.csv": b"2", "z.csv": b"2"})
    put, left = workspace_folder.put_file, iter(range(written))

    def interrupted(path: Path, content: bytes) -> None:
        if next(left, None) is None:
            raise OSError("interrupted")
        put(path, content)

    monkeypatch.setattr(workspace_folder, "put_file", interrupted)
    with pytest.raises(InvalidInput):
        fetch_into(folder, site)
    assert b"my work" in lies_in(folder).values()
    monkeypatch.undo()
    fetch_into(folder, site)
    assert b"my work" in lies_in(folder).values()
    assert lies_in(folder)["z.csv"] == b"2"


@pytest.mark.parametrize(
    ("mine", "new"),
    [({"data": b"mine"}, {"data/x.csv": b"1"}), ({"data/x.csv": b"mine"}, {"data": b"1"})],
)
def test_a_file_replaces_a_folder_of_its_name_and_the_reverse(
    tmp_path: Path, mine: dict[str, bytes], new: dict[str, bytes]
) -> None:
    site = Site({"ps1.py": b"todo"}, {"ps1.py": b"todo", **new})
    folder = tmp_path / "ps1"
    site.versions, versions = site.versions[:1], site.versions
    fetch_into(folder, site)
    for name, content in mine.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    site.versions = versions
    fetch_into(folder, site)
    found = lies_in(folder)
    assert {name: found[name] for name in new} == new
    assert b"mine" in found.values()


def test_a_folder_that_was_never_fetched_is_merged_too(tmp_path: Path) -> None:
    (tmp_path / "ps1.py").write_bytes(b"mine")
    fetch_into(tmp_path, Site({"ps1.py": b"todo"}))
    assert sorted(lies_in(tmp_path).values()) == [b"mine", b"todo"]


def test_a_folder_of_another_assignment_is_refused(tmp_path: Path) -> None:
    site = Site({"ps1.py": b"todo"})
    fetch_into(tmp_path, site)
    site.name = "ps2"
    with pytest.raises(InvalidInput, match="holds ps1 of cs101"):
        fetch_into(tmp_path, site)


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "ps1", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "data").symlink_to(elsewhere)
    with pytest.raises(InvalidInput):
        fetch_into(folder, Site({"data/x.csv": b"1"}))
    assert list(elsewhere.iterdir()) == []


def test_submitted_files_leave_out_links_and_checkpoints(tmp_path: Path) -> None:
    fetch_into(tmp_path, Site({"ps1.py": b"todo"}))
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "ps1-checkpoint.ipynb").write_bytes(b"old")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    found = read(tmp_path)
    assert (dict(found.files), found.left_out) == ({"ps1.py": b"todo"}, ("passwd",))
    assert [(file.name, base64.b64decode(file.content)) for file in found.sent] == [
        ("ps1.py", b"todo")
    ]


def test_a_path_that_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a folder"):
        read(tmp_path / "nowhere")
    assert workspace_folder.fetch_record_of(tmp_path) is None
    (tmp_path / MARK).write_text('{"course": 1}')
    assert workspace_folder.fetch_record_of(tmp_path) is None


@pytest.mark.parametrize("size", [32 << 20, 2 << 30], ids=["an assignment", "a job"])
def test_files_over_the_limit_are_refused_before_they_are_read(tmp_path: Path, size: int) -> None:
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(size + 1)  # a sparse file
    with pytest.raises(TooLarge, match=r"500 files, 32 MiB\. Name in .*/\.carrelignore"):
        files_to_submit(tmp_path)
    (tmp_path / ".carrelignore").write_text("large.bin\n")
    assert "large.bin" not in files_to_submit(tmp_path).files


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    for number in range(501):
        (tmp_path / f"{number}.csv").touch()
    with pytest.raises(TooLarge):
        files_to_submit(tmp_path)
    with pytest.raises(InvalidInput, match="is not a folder"):
        files_to_submit(tmp_path / "ps1")
