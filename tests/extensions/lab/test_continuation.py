"""The notebook of a session that continues as a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.extensions import job
from carrel.extensions.lab.continuation import continue_as_job, notebook_path
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import RequestOut

SESSION = RequestOut(
    id="s-1",
    kind="session",
    owner="ada",
    group="cs101",
    devices=2,
    model="NVIDIA H200",
    seconds=3600,
    state="running",
    submitted_at=0.0,
    image="torch@sha256:1",
    device_seconds=0.0,
)


def test_the_job_has_group_devices_and_image_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    monkeypatch.setattr(job, "submit", lambda path, **fields: sent.append((path, fields)))
    continue_as_job(SESSION, tmp_path / "a.ipynb", "2h")
    assert sent == [
        (
            tmp_path / "a.ipynb",
            {
                "devices": 2,
                "model": "NVIDIA H200",
                "time": "2h",
                "group": "cs101",
                "image": "torch@sha256:1",
                "labels": {"continues": "s-1"},
            },
        )
    ]


@pytest.mark.parametrize("path", ["../a.ipynb", "/etc/passwd", "b.txt", "", "missing.ipynb"])
def test_only_a_saved_notebook_of_the_session_can_continue(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "a.ipynb").write_text("{}")
    (root / "b.txt").write_text("")
    with pytest.raises(InvalidInput, match="not a notebook that is saved"):
        notebook_path(root, path)


def test_a_saved_notebook_is_found_below_the_folder_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.ipynb").write_text("{}")
    assert notebook_path(tmp_path, "deep/a.ipynb") == tmp_path / "deep" / "a.ipynb"
