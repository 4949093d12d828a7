"""What is said of a cluster that lacks something: JSON, a shared home, a common clock, a right."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.errors import BackendFailed, Unavailable
from carrel.hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from carrel.hub.records.diagnostics import Finding, Severity
from carrel.spawners.slurm.client import SlurmAnswer, SlurmClient
from carrel.spawners.slurm.doctor import SlurmDoctor
from carrel.spawners.slurm.job_states import PROLOGUE_FAILED, SlurmJob
from carrel.spawners.slurm.nodes import SlurmNode

Answer = Callable[[Sequence[str]], str]


class OneNode(SlurmClient):
    """A cluster of one node, with answers to its commands."""

    def __init__(self, **answers: Answer) -> None:
        super().__init__()
        self._answers = answers

    def run(self, *command: str) -> str:
        answer = self._answers.get(command[0])
        return "" if answer is None else answer(command)

    def run_as_job(self, *command: str) -> SlurmAnswer:
        return SlurmAnswer(code=0, out=self.run(*command), err="")

    def submit(self, *args: object, **options: object) -> int:
        return 1

    def signal(self, *args: object, **options: object) -> None:
        return None

    def jobs(self) -> tuple[SlurmJob, ...]:
        return ()

    def nodes(self) -> tuple[SlurmNode, ...]:
        return (SlurmNode.from_json({"name": "gpu1", "state": ["idle"], "gres": "gpu:a100:2"}),)


def findings(state: Path, **answers: Answer) -> dict[str, Finding]:
    doctor = SlurmDoctor(
        client=OneNode(**answers),
        settings=BackendSettings(state=state, service_url="http://127.0.0.1:9/carrel"),
        options=SlurmOptions(),
    )
    return {found.subject: found for found in doctor.findings()}


def seen(**changed: Any) -> Answer:
    """Return the answer of a node that sees the file of the check, but for these values.

    ``time`` is the difference of its clock in seconds.
    """

    def answer(command: Sequence[str]) -> str:
        path = next(Path(word) for word in command if "/.check-" in word)
        found: dict[str, Any] = {"time": 0, "text": path.read_text(), "carrel": True} | changed
        return json.dumps(found | {"time": time.time() + found["time"]})

    return answer


@pytest.mark.parametrize(
    ("changed", "severity", "what"),
    [
        ({}, Severity.FINE, "It shares the state folder, Carrel and the clock of this machine."),
        (
            {"text": None, "home": "No such file or directory"},
            Severity.MISSING,
            "It does not share STATE with this machine: No such file or directory.",
        ),
        (
            {"text": "another"},
            Severity.MISSING,
            "It does not share STATE with this machine: it has another folder of this path.",
        ),
        (
            {"time": -3600},
            Severity.WARNING,
            "Its clock differs from this machine's by 1 h.",
        ),
        (
            {"service": "timed out"},
            Severity.MISSING,
            "It does not reach the service at http://127.0.0.1:9/carrel: timed out.",
        ),
    ],
)
def test_a_node_that_sees_something_else_is_told(
    tmp_path: Path, changed: dict[str, object], severity: Severity, what: str
) -> None:
    found = findings(tmp_path, srun=seen(**changed))["gpu1"]
    assert (found.verdict, found.what) == (severity, what.replace("STATE", str(tmp_path)))
    assert found.mend or severity is Severity.FINE
    assert list(tmp_path.iterdir()) == []


FAILED = ("carrel: the prologue failed", f"srun: error: node1: Exited with {PROLOGUE_FAILED}")


@pytest.mark.parametrize("lines", [FAILED, FAILED[::-1]])
def test_a_prologue_that_fails_is_told_whichever_line_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Sequence[str]
) -> None:
    said = "\n".join(f"echo {shlex.quote(line)} >&2" for line in lines)
    srun = tmp_path / "srun"
    srun.write_text(f"#!/bin/sh\n{said}\nexit {PROLOGUE_FAILED}\n")
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(OneNode, "run_as_job", SlurmClient.run_as_job)
    found = findings(tmp_path)["gpu1"]
    assert found.verdict is Severity.MISSING
    assert found.what == "The prologue of sessions and jobs fails there."


def test_an_account_that_may_not_submit_is_told(tmp_path: Path) -> None:
    def refused(command: Sequence[str]) -> str:
        raise BackendFailed("sbatch: Invalid account or account/partition combination specified.")

    found = findings(tmp_path, sbatch=refused, srun=seen())["submission"]
    assert found.verdict is Severity.MISSING
    assert found.what == (
        "Slurm would refuse Carrel's jobs: sbatch: Invalid account or account/partition "
        "combination specified."
    )
    assert "sacctmgr add user" in found.mend


def test_a_slurm_without_json_output_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'squeue: error: unrecognized option --json' >&2\nexit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(Unavailable, match="This Slurm cannot list its jobs as JSON") as refused:
        SlurmClient().jobs()
    assert "JSON serializer" in refused.value.accepted
