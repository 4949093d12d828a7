"""Assignment magics: the terminal's commands, also inside an assignment's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.courses.workspace.folder import MARK
from carrel.extensions.magics.assignments import command_line
from carrel.extensions.magics.magics import carrel_magic
from carrel.hub.errors import InvalidInput

from ...fake_service import PREFIX, FakeService

SUBMISSIONS = f"{PREFIX}/courses/cs101/assignments/ps1/submissions"
RECEIPT = {
    "id": 17, "number": 1, "course": "cs101", "assignment": "ps1", "person": "anna", "at": 1000.0,
    "sha256": "ab" * 32, "files": [{"name": "ps1.ipynb", "sha256": "cd" * 32, "size": 2}],
    "size": 2, "standing": "on time", "penalty": 0.0, "counts": True, "sentence": "It is on time.",
}  # fmt: skip  # grouped by meaning


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of ps1, and the kernel of a notebook in it."""
    mark = {"course": "cs101", "assignment": "ps1", "version": 3}
    (tmp_path / MARK).write_text(json.dumps(mark))
    (tmp_path / "ps1.ipynb").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeService]:
    with FakeService() as fake:
        monkeypatch.setenv("CARREL_URL", fake.url)
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-session")
        monkeypatch.delenv("CARREL_TOKEN", raising=False)
        yield fake


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("submit-assignment ps1", "submit ps1 . --course cs101"),
        ("submit-assignment", "submit ps1 . --course cs101"),
        ("submit-assignment ps1 elsewhere", "submit ps1 elsewhere --course cs101"),
        ("submit-assignment --json", "submit ps1 . --json --course cs101"),
        ("submit-assignment ps2", "submit ps2"),
        ("fetch-assignment ps1", "fetch ps1 --to . --course cs101"),
        ("fetch-assignment --to new --course cs1", "fetch ps1 --to new --course cs1"),
        ("fetch-assignment ps2 --course cs1", "fetch ps2 --course cs1"),
        ("fetch-assignment --help", "fetch --help"),
    ],
)
def test_inside_an_assignments_folder_its_name_is_optional(
    fetched: Path, typed: str, meant: str
) -> None:
    assert command_line(typed.split(), fetched) == ["course", *meant.split()]


def test_elsewhere_the_assignment_is_named(tmp_path: Path) -> None:
    assert command_line(["submit-assignment", "ps1"], tmp_path) == ["course", "submit", "ps1"]
    with pytest.raises(InvalidInput, match="No assignment is given"):
        command_line(["submit-assignment"], tmp_path)


@pytest.mark.usefixtures("fetched")
def test_a_notebook_submits_its_folder(
    service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies: list[bytes] = []
    service.extra["POST", SUBMISSIONS] = lambda handler: (
        bodies.append(handler.raw),
        handler.say(200, RECEIPT),
    )[1]
    carrel_magic("submit-assignment")
    said = capsys.readouterr()
    assert "Submitted ps1 of cs101, number 1." in said.out, said.err
    assert "ab" * 32 in said.out
    (body,) = map(json.loads, bodies)
    assert body["version"] == 3
    assert [file["name"] for file in body["files"]] == ["ps1.ipynb"]
