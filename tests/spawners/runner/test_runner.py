"""The parts of the runner that need no kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from carrel.hub.attempts.journal import Journal, read_journal
from carrel.hub.attempts.spec import AttemptSpec
from carrel.hub.errors import InvalidInput
from carrel.hub.records.events import NewEvent
from carrel.hub.records.requests import CauseCode, JobSpec
from carrel.spawners.runner.__main__ import main, take_claim
from carrel.spawners.runner.attempt import outcome_messages as outcome

ORDER = AttemptSpec(
    lease_id="j-1.1",
    request_id="j-1",
    epoch=1,
    token="token",
    service_url="http://127.0.0.1:9",
    input_path="/in.ipynb",
    home="/home",
    devices=("Simulated GPU 0 (simulated)",),
    device_ids=("SIM-1",),
    job=JobSpec(notebook_name="in.ipynb", parameters={"lr": 0.5, "deep": {"list": [1, None, "ü"]}}),
)


def test_an_order_survives_the_file_which_is_private(tmp_path: Path) -> None:
    ORDER.write(tmp_path)
    assert AttemptSpec.read(tmp_path) == ORDER
    assert (tmp_path / "order.json").stat().st_mode & 0o777 == 0o600


def test_the_keys_of_an_order_are_those_that_runners_in_older_images_read(tmp_path: Path) -> None:
    ORDER.write(tmp_path)
    told = json.loads((tmp_path / "order.json").read_text())
    assert told | {"limits": {}} == {
        "lease_id": "j-1.1",
        "request_id": "j-1",
        "epoch": 1,
        "token": "token",
        "service_url": "http://127.0.0.1:9",
        "input_path": "/in.ipynb",
        "notebook_name": "in.ipynb",
        "output_name": "",
        "parameters": {"lr": 0.5, "deep": {"list": [1, None, "ü"]}},
        "kernel": "",
        "home": "/home",
        "devices": ["Simulated GPU 0 (simulated)"],
        "device_ids": ["SIM-1"],
        "command": [],
        "workdir": "",
        "archive_path": "",
        "memory_bytes": 0,
        "from_cell": 0,
        "resumes": "",
        "continuation": "",
        "fork_server": "",
        "image": "",
        "owner": "",
        "course_data": "",
        "member": None,
        "secrets": [],
        "sweep": None,
        "computes_prefix": False,
        "limits": {},
        "program": "",
        "source_hash": "",
    }


def test_an_order_of_a_later_carrel_is_understood_in_an_older_image(tmp_path: Path) -> None:
    ORDER.write(tmp_path)
    told = json.loads((tmp_path / "order.json").read_text())
    told |= {"colour": "blue", "limits": {**told["limits"], "colours": 3}}
    (tmp_path / "order.json").write_text(json.dumps(told))
    assert AttemptSpec.read(tmp_path) == ORDER


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"devices": [], "device_ids": []}'])
def test_an_invalid_order_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "order.json").write_text(text)
    with pytest.raises(InvalidInput, match="is not a valid order"):
        AttemptSpec.read(tmp_path)


def test_a_missing_order_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "order.json is not a valid order" in capsys.readouterr().out
    assert main([]) == 2


def test_a_runner_claims_its_job_before_it_imports_what_notebooks_need() -> None:
    asked = "import sys, carrel.spawners.runner.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & {"carrel", "nbformat", "jsonschema", "papermill", "zmq"} == {"carrel"}


def test_the_claim_can_be_taken_once(tmp_path: Path) -> None:
    assert [take_claim(tmp_path), take_claim(tmp_path)] == [True, False]


def test_a_journal_numbers_its_events_and_is_read_up_to_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_journal(path) == ()
    journal = Journal(path)
    written = (journal.write("cells", {"cells": 1}), journal.write("ended", {"code": "x"}))
    with path.open("ab") as file:
        file.write(b'{"seq": 3, "at": 1.0, "kind": "en')
    assert read_journal(path) == written
    assert [event.seq for event in written] == [1, 2]
    assert isinstance(written[0], NewEvent)


@pytest.mark.parametrize(
    ("status", "words"),
    [(0, "exit status 0"), (3, "exit status 3"), (-9, "signal 9, SIGKILL"), (-77, "signal 77")],
)
def test_exit_statuses_are_described(status: int, words: str) -> None:
    assert outcome.describe_exit(status) == words


def test_a_cell_error_is_one_short_line_with_a_plain_traceback() -> None:
    value = "first line\nsecond \x1b[31mred\x1b[0m " + "x" * 1000
    found = outcome.cell_error("cell 3", "ValueError", value, "\x1b[0;31mred\x1b[0m \ud800")
    assert found.code is CauseCode.CELL_ERROR
    assert found.message.startswith("error in cell 3: ValueError: first line second red xxx")
    assert len(found.message) == outcome.MAX_MESSAGE
    assert found.details == "red ?"


def test_signal_9_is_not_called_out_of_memory() -> None:
    assert outcome.kernel_died("cell 1", -9).message == "kernel died in cell 1 (signal 9, SIGKILL)"
    assert outcome.kernel_died("", None).message == "kernel died"


def test_the_end_of_an_attempt_survives_a_torn_journal(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = Journal(path)
    begun = journal.write("cells", {"cells": 1})
    ended = journal.write("ended", {"code": "succeeded", "message": "Ran 1 cell."})
    path.write_bytes(path.read_bytes()[:-20])
    assert list(read_journal(path)) == [begun, ended]
    path.unlink()
    assert list(read_journal(path)) == [ended]


def test_a_line_that_was_written_in_part_spoils_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    journal = Journal(path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
    journal.write("cells", {"cells": 1})  # The disk is full.
    monkeypatch.undo()
    later = journal.write("progress", {"step": 1})
    assert list(read_journal(path)) == [later]
