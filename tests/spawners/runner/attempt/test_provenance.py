"""What runners report for the receipt of their attempt."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

from carrel.hub.attempts.spec import PROVENANCE
from carrel.hub.provenance.notebook_hash import source_hash
from carrel.hub.provenance.receipt import ReportedOut
from carrel.hub.receipts.reruns import submitted

from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, printed, read


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


def test_an_executed_notebook_runs_again_as_it_was_submitted_with_the_same_numbers(
    desk: Desk,
) -> None:
    draw = "import random\nrandom.seed(seed)\nprint(random.random())"
    first = desk.order(notebook(draw, parameters="seed = 1"), parameters={"seed": 7})
    assert wait_for_end(desk, first, desk.backend.start(first)) == 0
    executed = json.loads((first.folder / "output.ipynb").read_text())
    before = json.loads(first.input_path.read_text())
    assert source_hash(executed) == source_hash(before)
    again = desk.order(json.dumps(submitted(executed)), parameters={"seed": 7})
    assert wait_for_end(desk, again, desk.backend.start(again)) == 0
    results = [printed(read(each.folder / "output.ipynb")) for each in (first, again)]
    assert results[0] == results[1] != ""
