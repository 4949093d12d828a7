"""The engine and the addresses in papermill's own registries, against a scripted service."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillException
from papermill.iorw import list_notebook_files, papermill_io

from carrel.extensions.papermill.options import JobOptions
from carrel.hub.errors import InvalidInput, NotFound, Unavailable

from ...fake_service import FakeService

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
JOB = "j-00000000"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeService]:
    with FakeService() as fake:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("CARREL_URL", fake.url)
        monkeypatch.setenv("CARREL_TOKEN", "of-anna")
        monkeypatch.chdir(tmp_path)
        yield fake


def notebook(*sources: str) -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    made: nbformat.NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)
    return made


def executed(*sources: str, statuses: str = "", printed: str = "") -> bytes:
    """Return what the job has executed: ``cfrp`` for completed, failed, running and pending."""
    made = notebook(*sources)
    names = {"c": "completed", "f": "failed", "r": "running", "p": "pending"}
    for cell, letter in zip(made.cells, statuses, strict=True):
        cell.metadata.papermill = {"status": names[letter], "exception": letter == "f"}
        if letter in "cf":
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed)]
    return str(nbformat.writes(made)).encode()


def end(service: FakeService, code: str, message: str, state: str = "failed") -> None:
    cause = {"code": code, "message": message}
    service.change(JOB, state=state, ended=True, cause=cause)


def when_submitted(service: FakeService, *, output: bytes, code: str, message: str = "") -> None:
    """Let the job queue, run and end, once it has been submitted."""

    def act() -> None:
        service.wait_for(lambda: JOB in service.requests)
        service.wait_for(lambda: (JOB, "queued") in service.shown)
        service.outputs[JOB] = output
        service.add_event(JOB, "cells", cells=2)
        end(service, code, message, "succeeded" if code == "succeeded" else "failed")

    threading.Thread(target=act, daemon=True).start()


def execute(out: str | None = "out.ipynb", **options: Any) -> nbformat.NotebookNode:
    return papermill.execute_notebook(
        notebook("1", "2"), out, engine_name="carrel", progress_bar=False, **options
    )


def test_the_job_has_the_options_and_the_output_of_the_job_returns(service: FakeService) -> None:
    when_submitted(
        service, output=executed("1", "2", statuses="cc", printed="hi\n"), code="succeeded"
    )
    printed = io.StringIO()
    done = execute(devices=2, time="30m", memory="1GiB", labels={"a": "b"}, stdout_file=printed)
    body = service.called("POST", "requests")[0]
    assert (body["devices"], body["seconds"], body["memory_bytes"]) == (2, 1800, 2**30)
    assert (body["group"], body["labels"], body["kernel"]) == ("cs101", {"a": "b"}, "python3")
    assert "parameters" not in body
    assert [cell.outputs[0].text for cell in done.cells] == ["hi\n", "hi\n"]
    assert printed.getvalue() == "hi\nhi\n"
    saved = nbformat.read("out.ipynb", as_version=4)
    assert [cell.metadata.papermill.status for cell in saved.cells] == ["completed"] * 2


@pytest.mark.parametrize(
    ("code", "error"), [("kernel_died", DeadKernelError), ("time_limit", PapermillException)]
)
def test_an_end_that_is_no_error_of_a_cell_is_an_error_with_its_message(
    service: FakeService, code: str, error: type[Exception]
) -> None:
    output = executed("1", "2", statuses="cp", printed="hi\n")
    when_submitted(service, output=output, code=code, message="It ended too early.")
    with pytest.raises(error, match=f"{JOB}: It ended too early"):
        execute()
    saved = nbformat.read("out.ipynb", as_version=4)
    assert [cell.metadata.papermill.status for cell in saved.cells] == ["completed", "pending"]


def test_the_place_in_the_queue_is_one_line_for_each_change(
    service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        service.wait_for(lambda: JOB in service.requests)
        for place in (2, 1):
            sentence = f"Queued at position {place}. All devices are in use."
            wait = {"place": place, "ahead": 0, "reason": "x", "sentence": sentence}
            before = len(service.shown)
            service.change(JOB, wait=wait)
            service.wait_for(lambda before=before: len(service.shown) > before)
        service.outputs[JOB] = executed("1", "2", statuses="cc")
        end(service, "succeeded", "", "succeeded")

    threading.Thread(target=act, daemon=True).start()
    execute()
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"Submitted {JOB} to http")
    assert said[1:] == [
        "Queued at position 2. All devices are in use.",
        "Queued at position 1. All devices are in use.",
    ]


def test_without_a_service_nothing_runs_and_the_error_says_so(service: FakeService) -> None:
    service.close()
    try:
        with pytest.raises(Unavailable):
            execute()
    finally:
        service.open()
    assert not Path("out.ipynb").exists()


def test_unknown_options_are_refused_before_anything_is_submitted(service: FakeService) -> None:
    with pytest.raises(InvalidInput, match=r"no option device\..*devices"):
        execute(device=1)
    with pytest.raises(InvalidInput, match="limit of the whole job"):
        execute(execution_timeout=5)
    assert service.called("POST", "requests") == []


def test_arguments_come_before_variables_before_defaults() -> None:
    variables = {"CARREL_JOB_DEVICES": "2", "CARREL_JOB_TIME": "2h", "CARREL_JOB_UPLOAD": "1"}
    options = JobOptions.of({"devices": 1, "group": "cs101"}, variables)
    assert options.fields() == {"devices": 1, "seconds": 7200, "internet": True, "labels": {}}
    assert options.uploads
    wrong = [{f"CARREL_JOB_{name}": "soon"} for name in ("DEVICES", "RETRIES", "INTERNET", "TIME")]
    for variables in wrong:
        with pytest.raises(InvalidInput, match="soon"):
            JobOptions.of({}, variables).fields()


def test_outputs_are_read_and_listed_by_address_and_never_written(service: FakeService) -> None:
    service.add(JOB, output="train.ipynb")
    service.outputs[JOB] = executed("1", statuses="c", printed="é")
    service.files[JOB] = {"a/b.ipynb": b"{}", "picture.png": b"\xff\x00"}
    assert papermill_io.read(f"carrel://{JOB}/output.ipynb").encode() == service.outputs[JOB]
    assert papermill_io.read(f"carrel://{JOB}/files/a/b.ipynb") == "{}"
    listed = [f"carrel://{JOB}/output.ipynb", f"carrel://{JOB}/files/a/b.ipynb"]
    assert list_notebook_files(f"carrel://{JOB}") == listed
    assert papermill.inspect_notebook(listed[0]) == {}
    with pytest.raises(InvalidInput, match="not a text in UTF-8"):
        papermill_io.read(f"carrel://{JOB}/files/picture.png", extensions=[])
    for wrong in (f"carrel://{JOB}", "carrel:///output.ipynb", f"carrel://{JOB}/input.ipynb"):
        with pytest.raises(InvalidInput, match="is not the address of an output"):
            papermill_io.read(wrong, extensions=[])
    with pytest.raises(NotFound):
        papermill_io.read("carrel://j-9/output.ipynb")
    with pytest.raises(InvalidInput, match="only the job itself writes"):
        execute(f"carrel://{JOB}/output.ipynb")
    assert service.called("POST", "requests") == []
    assert json.loads(service.outputs[JOB])["cells"]
