"""Material is fetched from a git server and merged into its folder without losing work."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.extensions.materials import repository
from carrel.extensions.materials.fetched_versions import FetchedVersions
from carrel.extensions.materials.material_folder import MARK, OpenedMaterialOut, open_in, record_of
from carrel.extensions.materials.repository import fetch_repository
from carrel.hub.errors import CarrelError, InvalidInput, NotFound, TooLarge, Unavailable
from carrel.hub.schemas.open_links.bodies import MaterialOut

from .git_server import GitServer, git, git_server


def notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "markdown", "id": f"cell-{at}", "metadata": {}, "source": source}
        for at, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with git_server(tmp_path_factory.mktemp("served")) as made:
        yield made


class Home:
    """The home of a user who opens links."""

    def __init__(self, folder: Path, server: GitServer) -> None:
        self.root = folder / "home"
        self.root.mkdir()
        self.server = server
        self.versions = FetchedVersions(folder / "data")

    def open(self, name: str, *, branch: str = "", path: str = "") -> OpenedMaterialOut:
        url = f"{self.server.url}/{name}"
        return open_in(self.root, MaterialOut(url=url, branch=branch, path=path), self.versions)


@pytest.fixture
def home(tmp_path: Path, server: GitServer) -> Home:
    return Home(tmp_path, server)


def test_a_cell_of_the_user_and_another_of_the_repository_are_both_kept(home: Home) -> None:
    first = {"week1/a.ipynb": notebook("# Title", "question 1", "question 2"), "data.csv": "1\n"}
    home.server.commit("course", {**first, "run.sh": "echo\n", "gone.txt": "old\n"})
    opened = home.open("course.git", path="week1/a.ipynb")
    assert opened == OpenedMaterialOut(
        folder="course", shown="course", file="course/week1/a.ipynb", notes=[]
    )
    folder = home.root / "course"
    assert (folder / "run.sh").stat().st_mode & 0o100

    (folder / "week1/a.ipynb").write_text(notebook("# Title", "my answer", "question 2"))
    (folder / "data.csv").write_text("mine\n")
    (folder / "results.bin").write_text("result\n")
    second = {"week1/a.ipynb": notebook("# Title", "question 1", "question 2, corrected")}
    home.server.commit("course", {**second, "data.csv": "2\n", "b.py": "b\n", "gone.txt": None})
    opened = home.open("course.git", path="week1/a.ipynb")
    assert sources(folder / "week1/a.ipynb") == ["# Title", "my answer", "question 2, corrected"]
    assert opened.notes == [
        "data.csv was changed in the new version and by you: yours is data.own-copy.csv."
    ]
    kept = {each.name: each.read_text() for each in folder.iterdir() if each.is_file()}
    assert record_of(folder) is not None
    del kept[MARK]
    assert kept == {
        "data.csv": "2\n",
        "data.own-copy.csv": "mine\n",
        "results.bin": "result\n",
        "run.sh": "echo\n",
        "b.py": "b\n",
    }
    assert len(list(home.versions.root.rglob("*.zip"))) == 1, "older versions are removed"

    before = (folder / "week1/a.ipynb").read_text()
    assert home.open("course.git", path="week1/a.ipynb").notes == []
    assert (folder / "week1/a.ipynb").read_text() == before


def test_a_folder_of_the_user_and_another_branch_are_left_alone(home: Home) -> None:
    home.server.commit("own", {"a.txt": "a\n"})
    home.server.commit("own", {"a.txt": "next\n"}, branch="next")
    (home.root / "own").mkdir()
    (home.root / "own/a.txt").write_text("mine\n")
    assert home.open("own.git").folder == "own-1"
    assert home.open("own.git", branch="main").folder == "own-1", "it is the default branch"
    assert home.open("own.git", branch="next").folder == "own-2"
    found = {each.parent.name: each.read_text() for each in home.root.glob("*/a.txt")}
    assert found == {"own": "mine\n", "own-1": "a\n", "own-2": "next\n"}


def test_a_crash_between_two_steps_loses_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.server.commit("crash", {"a.ipynb": notebook("one", "two")})
    folder = home.root / "crash"
    removed = FetchedVersions.keep_only

    def crash(*_: object) -> None:
        raise OSError("crash")

    monkeypatch.setattr("carrel.extensions.materials.material_folder.write_changes", crash)
    with pytest.raises(InvalidInput):
        home.open("crash.git")
    monkeypatch.undo()
    assert home.open("crash.git").folder == "crash", "the next call continues in the folder"
    (folder / "a.ipynb").write_text(notebook("mine", "two"))
    home.server.commit("crash", {"a.ipynb": notebook("one", "two, new")})
    monkeypatch.setattr(FetchedVersions, "keep_only", crash)
    with pytest.raises(InvalidInput):
        home.open("crash.git")
    monkeypatch.setattr(FetchedVersions, "keep_only", removed)
    assert home.open("crash.git").notes == []
    assert sources(folder / "a.ipynb") == ["mine", "two, new"]


def test_links_hooks_filters_and_odd_names_have_no_effect(home: Home, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret\n")
    attributes = "*.txt filter=evil ident export-subst\n"
    odd = {"b\\c.txt": "b\n", "e\u202ef.txt": "e\n", ".carrel-assignment.json": "{}", MARK: "{}"}
    home.server.commit(
        "evil",
        {".gitattributes": attributes, "a.txt": "$Id$\n", **odd},
        links={"link.txt": str(secret), "up": "../.."},
    )
    opened = home.open("evil.git")
    assert opened.notes == [
        "Left out, since they are links, submodules or have unusable names: "
        ".carrel-assignment.json, .carrel-material.json, b\\c.txt, e\ufffdf.txt, link.txt and "
        "1 more."
    ]
    names = sorted(each.name for each in (home.root / "evil").iterdir())
    assert names == [MARK, ".gitattributes", "a.txt"]
    assert (home.root / "evil/a.txt").read_text() == "$Id$\n"


def test_a_link_of_the_user_in_the_place_of_a_folder_is_not_followed(home: Home) -> None:
    home.server.commit("linked", {"data/x.csv": "1\n"})
    home.open("linked.git")
    folder, elsewhere = home.root / "linked", home.root / "elsewhere"
    (folder / "data").rename(elsewhere)
    (folder / "data").symlink_to(elsewhere)
    home.server.commit("linked", {"data/x.csv": "2\n"})
    with pytest.raises(InvalidInput, match="linked/data is a link"):
        home.open("linked.git")
    assert (elsewhere / "x.csv").read_text() == "1\n"


@pytest.mark.parametrize(
    ("name", "given", "error", "says"),
    [
        ("bad.git", {"branch": "no"}, NotFound, r"bad.git has no branch or tag no"),
        ("bad.git", {"path": "no.ipynb"}, NotFound, r"has no file or folder no.ipynb in main"),
        ("bad.git", {"path": "broken.ipynb"}, InvalidInput, r"broken.ipynb is not a notebook"),
        ("none.git", {}, NotFound, r"no public repository at .*/none.git"),
        ("private/bad.git", {}, NotFound, r"no public repository at .*/private/bad.git"),
        ("moved/bad.git", {}, InvalidInput, r"moved/bad.git leads to another address"),
        ("none.ipynb", {}, NotFound, r"no public notebook at .* \(status 404\)"),
        ("moved/a.ipynb", {}, InvalidInput, r"moved/a.ipynb leads to another address"),
        ("page.ipynb", {}, InvalidInput, r"page.ipynb is not a notebook"),
    ],
)
def test_what_cannot_be_opened_says_why_and_writes_nothing(
    home: Home, name: str, given: dict[str, str], error: type[CarrelError], says: str
) -> None:
    if not (home.server.root / "bad.git").exists():
        home.server.commit("bad", {"a.txt": "a\n", "broken.ipynb": "{}"})
        (home.server.root / "page.ipynb").write_text("<html>")
    with pytest.raises(error, match=says):
        home.open(name, **given)
    assert not list(home.root.iterdir())


def test_one_notebook_is_merged_as_well(home: Home) -> None:
    served = home.server.root / "lesson.ipynb"
    served.write_text(notebook("one", "two"))
    assert home.open("lesson.ipynb").file == "lesson/lesson.ipynb"
    mine = home.root / "lesson/lesson.ipynb"
    mine.write_text(notebook("mine", "two"))
    served.write_text(notebook("one", "two, new"))
    assert home.open("lesson.ipynb").notes == []
    assert sources(mine) == ["mine", "two, new"]


def test_size_and_time_are_limited(server: GitServer) -> None:
    server.commit("large", {f"{at}.bin": bytes([at]) * (1 << 20) for at in range(3)})
    with pytest.raises(TooLarge, match=r"large\.git is too large"):
        fetch_repository(f"{server.url}/large.git", "", most_bytes=2 << 20)
    server.commit("noise", {"noise.bin": os.urandom(3 << 20)})
    with pytest.raises(TooLarge, match=r"noise\.git is too large"):
        fetch_repository(f"{server.url}/noise.git", "", most_bytes=1 << 20)
    with pytest.raises(Unavailable, match="not fetched within 0 seconds"):
        fetch_repository(f"{server.url}/large.git", "", seconds=0)


def test_a_tree_that_contains_itself_many_times_is_refused(server: GitServer) -> None:
    bare = server.root / "bomb.git"
    git("init", "-q", "--bare", "-b", "main", str(bare), at=server.root)
    empty = git("hash-object", "-w", "-t", "blob", "/dev/null", at=bare)
    tree = _tree(bare, [f"100644 blob {empty}\tf{at}" for at in range(10)])
    for _ in range(7):
        tree = _tree(bare, [f"040000 tree {tree}\td{at}" for at in range(10)])
    commit = git("commit-tree", tree, "-m", "bomb", at=bare)
    git("update-ref", "refs/heads/main", commit, at=bare)
    with pytest.raises(TooLarge, match=r"bomb\.git is too large"):
        fetch_repository(f"{server.url}/bomb.git", "", most_bytes=1 << 20)


def _tree(bare: Path, lines: list[str]) -> str:
    done = subprocess.run(
        ["git", "mktree"], cwd=bare, input="\n".join(lines), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize("url", ["file:///etc", "ssh://127.0.0.1/x.git", "ext::sh -c id"])
def test_only_http_and_https_are_spoken(url: str) -> None:
    with pytest.raises(CarrelError, match="not allowed"):
        fetch_repository(url, "")


def test_without_git_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="has no git"):
        repository.fetch_repository("http://127.0.0.1:9/x.git", "")
