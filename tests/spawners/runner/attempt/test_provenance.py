"""What runners report for the receipt of their attempt."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from carrel.hub.attempts.spec import PROVENANCE
from carrel.hub.provenance.receipt import ReportedOut

from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook


def reported(folder: Path) -> ReportedOut:
    return ReportedOut.model_validate_json((folder / PROVENANCE).read_bytes())


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_a_command_reports_its_inputs_packages_and_commit(desk: Desk) -> None:
    order = desk.order(command=("sh", "-c", "cat < train.csv"), workdir="project")
    project = order.home / "project"
    project.mkdir(parents=True)
    (project / "train.csv").write_text("1\n")
    git(project, "init")
    git(project, "add", ".")
    git(project, "commit", "-m", "first")
    (project / "train.csv").write_text("2\n")
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    found = reported(order.folder)
    (read,) = found.inputs.files
    assert (read.path, read.sha256) == (
        "home/project/train.csv",
        hashlib.sha256(b"2\n").hexdigest(),
    )
    assert found.git is not None
    assert (len(found.git.commit), found.git.differs) == (40, True)
    assert any(each.startswith("papermill==") for each in found.packages)


def test_a_notebook_that_fails_reports_what_it_has_read(desk: Desk) -> None:
    order = desk.order(notebook("open('lr.txt').read()", "1 / 0"))
    (order.home / "lr.txt").write_text("0.1")
    assert wait_for_end(desk, order, desk.backend.start(order)) == 1
    found = reported(order.folder)
    assert [each.path for each in found.inputs.files] == ["home/lr.txt"]
    assert found.git is None
