"""Commands as jobs, uploads, bulk cancel, files and following, against a real HTTP server."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from carrel.hub.cli import cli

from ....fake_service import FakeService

Carrel = Callable[..., Result]


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as fake:
        yield fake


@pytest.fixture
def carrel(service: FakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Carrel:
    """Run one command in a session, in the folder ~/project."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CARREL_URL", service.url)
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-session")
    monkeypatch.delenv("CARREL_TOKEN", raising=False)

    def run(name: str, *arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(cli, [name, *arguments], input=input, prog_name="carrel")

    return run


def members(body: dict[str, str]) -> list[str]:
    content = base64.b64decode(body["archive"])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return archive.getnames()


def test_in_a_session_a_command_works_in_this_folder(service: FakeService, carrel: Carrel) -> None:
    done = carrel("run", "--devices", "1", "--memory", "8GiB", "--retries", "2", "--label", "a=b",
                  "--model", "NVIDIA H200", "--", "python", "train.py", "--lr", "0.1", "--devices",
                  "7")  # fmt: skip  # pairs
    assert done.exit_code == 0, done.output
    body = service.called("POST", "requests")[0]
    assert body.pop("idempotency_key")
    assert body == {
        "kind": "job", "group": "cs101", "devices": 1, "seconds": 3600, "labels": {"a": "b"},
        "command": ["python", "train.py", "--lr", "0.1", "--devices", "7"],
        "model": "NVIDIA H200", "workdir": "project", "memory_bytes": 8 * 2**30, "retries": 2,
    }  # fmt: skip  # grouped by meaning


def test_a_command_runs_in_a_shell_only_where_asked(service: FakeService, carrel: Carrel) -> None:
    done = carrel("run", "--workdir", ".", "--", "cat", "a", "|", "wc")
    assert "No shell runs this command: '|' is passed on as text. Use --shell" in done.stderr
    quiet = carrel("run", "--workdir", ".", "--shell", "cat a | wc > b && true")
    assert "shell" not in quiet.stderr
    carrel("run", "--workdir", ".", "--shell", "--", "cat", "a", "|", "wc")
    assert [body["command"] for body in service.called("POST", "requests")] == [
        ["cat", "a", "|", "wc"],
        ["sh", "-c", "cat a | wc > b && true"],
        ["sh", "-c", "cat a | wc"],
    ]


def test_a_repaired_notebook_is_noted_unless_json_is_printed(
    service: FakeService, carrel: Carrel
) -> None:
    old = json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": []}]})
    Path("old.ipynb").write_text(old)
    service.notes = ["Upgraded from notebook format 3 to 4.5."]
    note = "old.ipynb was repaired: Upgraded from notebook format 3 to 4.5.\n"
    assert carrel("submit", "old.ipynb").stderr == note
    as_json = carrel("submit", "old.ipynb", "--json")
    assert (as_json.stderr, json.loads(as_json.stdout)["notes"]) == ("", service.notes)


def test_elsewhere_it_says_how_to_upload_files(
    service: FakeService, carrel: Carrel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    done = carrel("run", "--", "true")
    assert "--upload" in done.stderr
    assert done.exit_code != 0
    assert not service.called("POST", "requests")


def test_an_upload_asks_with_its_size(service: FakeService, carrel: Carrel) -> None:
    refused = carrel("run", "--upload", "--", "python", "train.py", input="n\n")
    assert "1 file of " in refused.stderr
    assert "14 B" in refused.stderr
    assert "Nothing was uploaded." in refused.stderr
    unanswered = carrel("run", "--upload", "--", "python", "train.py", input="")
    assert "--yes" in unanswered.stderr
    assert not service.requests
    assert carrel("run", "--upload", "--yes", "--", "python", "train.py").exit_code == 0
    assert members(service.called("POST", "requests")[0]) == ["train.py"]


def test_inputs_are_uploaded_without_confirmation(service: FakeService, carrel: Carrel) -> None:
    Path("data.csv").write_text("1,2")
    done = carrel("run", "--input", "data.csv", "--json", "--", "cat", "data.csv")
    assert json.loads(done.stdout)["id"] == "j-00000000"
    assert members(service.called("POST", "requests")[0]) == ["data.csv"]


def test_a_job_may_be_submitted_without_internet(service: FakeService, carrel: Carrel) -> None:
    carrel("run", "--no-internet", "--workdir", ".", "--", "date")
    carrel("run", "--workdir", ".", "--", "date")
    assert [job.get("internet", True) for job in service.called("POST", "requests")] == [
        False,
        True,
    ]
    service.change("j-00000000", internet=False)
    assert "Internet:        no access" in carrel("show", "j-00000000").stdout


def test_a_job_may_be_submitted_without_the_compile_cache(
    service: FakeService, carrel: Carrel
) -> None:
    carrel("run", "--no-compile-cache", "--label", "sweep=7", "--workdir", ".", "--", "date")
    carrel("submit", "train.py", "--no-compile-cache", "--label", "compile-cache=on")
    carrel("submit", "train.py")
    assert [job["labels"] for job in service.called("POST", "requests")] == [
        {"sweep": "7", "compile-cache": "off"},
        {"compile-cache": "off"},
        {},
    ]


def test_a_bulk_cancel_asks_with_the_number_of_requests(
    service: FakeService, carrel: Carrel
) -> None:
    for number in range(3):
        service.add(f"j-{number}", labels={"sweep": "7"}, state="running" if number else "queued")
    service.add("j-other", labels={"sweep": "8"})
    service.add("j-old", labels={"sweep": "7"}, state="succeeded", ended=True)
    refused = carrel("cancel", "--label", "sweep=7", input="n\n")
    assert "3 requests with sweep=7, 2 of them running. Cancel all?" in refused.stderr
    assert not [r for r in service.requests.values() if r["state"] == "cancelled"]
    done = carrel("cancel", "--label", "sweep=7", "--yes", "--json")
    assert [json.loads(line)["state"] for line in done.stdout.splitlines()] == ["cancelled"] * 3
    assert service.requests["j-other"]["state"] == "queued"
    assert carrel("cancel").exit_code == 2


def test_ps_filters_and_the_queue_has_reasons(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1", labels={"sweep": "7"}, command=["python", "a b.py"])
    service.add("s-1", kind="session")
    assert "python 'a b.py'" in carrel("ps", "--kind", "job").output
    assert "s-1" not in carrel("ps", "--kind", "job").output
    found = json.loads(carrel("ps", "--label", "sweep=7", "--json").stdout)["requests"]
    assert [request["id"] for request in found] == ["j-1"]
    place, row = carrel("queue").output.splitlines()[:2]
    assert (place.split()[0], row.split()[0]) == ("POSITION", "1")
    assert row.endswith("  Full."), "the place has its own column"
    assert json.loads(carrel("queue", "--json").stdout)["total"] == 2


def test_names_of_others_cannot_control_the_terminal(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1", notebook="\x1b]0;gotcha\x07.ipynb")
    assert "\x1b" not in carrel("ps").output


def test_files_are_written_below_one_folder(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1", state="succeeded", ended=True)
    service.files["j-1"] = {"loss.csv": b"1", "plots/a.png": b"22"}
    done = carrel("output", "j-1", "--files", "-o", "results", "--json")
    assert [json.loads(line)["bytes"] for line in done.stdout.splitlines()] == [1, 2]
    assert Path("results/plots/a.png").read_bytes() == b"22"
    assert "already exists" in carrel("output", "j-1", "--files", "-o", "results").stderr
    odd = {"two\nlines": b"1", "back\\slash": b"2"}
    service.files["j-1"] = odd
    fetched = carrel("output", "j-1", "--files", "-o", "odd")
    assert {name: Path("odd", name).read_bytes() for name in odd} == odd
    assert "Wrote odd/two?lines (1 B)." in fetched.stdout
    service.files["j-1"] = {"fine.csv": b"1", "../evil.csv": b"2"}
    refused = carrel("output", "j-1", "--files")
    assert "is outside of" in refused.stderr
    assert not Path("j-1-files/fine.csv").exists()


def test_following_shows_cells_outputs_and_failures(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1", state="failed", ended=True, cause={
        "code": "cell_error", "message": "Cell 2 raised ValueError.", "details": "",
    })  # fmt: skip  # grouped by meaning
    stream = {"output_type": "stream", "name": "stdout", "text": "10%\r20%\x1b[31m loss 0.1\n"}
    picture = {"output_type": "display_data",
               "data": {"image/png": "…", "text/plain": "<Figure>"}}  # fmt: skip  # grouped
    service.add_event("j-1", "cells", cells=2)
    service.add_event("j-1", "cell_started", index=0, number=1)
    service.add_event("j-1", "cell_output", index=0, number=1, output=stream)
    service.add_event("j-1", "cell_output", index=0, number=1, output=picture)
    service.add_event("j-1", "progress", number=1, done=3, of=3, text="epochs")
    service.add_event("j-1", "cell_finished", index=0, number=1, seconds=2.0)
    service.add_event("j-1", "cell_failed", index=1, number=2, ename="ValueError", evalue="no",
                      traceback="Traceback\nValueError: no")  # fmt: skip  # grouped by meaning
    done = carrel("wait", "--follow", "j-1")
    assert done.exit_code == 1
    for part in ("cell 1 of 2 started", "\n20% loss 0.1\n", "[image/png] <Figure>", "3/3 epochs",
                 "cell 1 of 2 finished in 2 s", "failed: ValueError", "ValueError: no",
                 "Cell 2 raised ValueError."):  # fmt: skip  # grouped by meaning
        assert part in done.output, (part, done.output)
    assert "\x1b" not in done.output
    lines = carrel("wait", "--follow", "--json", "j-1").stdout.splitlines()
    assert [json.loads(line).get("kind") for line in lines].count("cell_output") == 2


def test_a_followed_command_shows_its_output(service: FakeService, carrel: Carrel) -> None:
    def go_on() -> None:
        service.wait_for(lambda: service.requests)
        service.logs["j-00000000"] = "epoch 1\nepoch ü".encode()
        service.change("j-00000000", state="succeeded", ended=True)

    thread = threading.Thread(target=go_on)
    thread.start()
    done = carrel("run", "--follow", "--", "python", "train.py")
    thread.join()
    assert done.exit_code == 0
    assert "epoch 1\nepoch ü" in done.output


def test_a_parameter_gets_a_value_of_an_earlier_job(service: FakeService, carrel: Carrel) -> None:
    Path("train.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    result = ("--after", "j-1", "--result", "lr", "j-1.best.lr")
    done = carrel("submit", "train.ipynb", *result, "-p", "n", "3")
    assert done.exit_code == 0, done.output
    (body,) = service.called("POST", "requests")
    assert (body["parameters"], body["results"]) == ({"n": 3}, {"lr": "j-1.best.lr"})
    made = next(iter(service.requests))
    for source, told in (("", "lr will be best.lr of j-1"), ("j-2", "lr from j-2 (best.lr)")):
        origin = {"name": "lr", "job": "j-1", "value": "best.lr", "source": source}
        service.change(made, results=[origin])
        assert told in carrel("show", made).stdout
