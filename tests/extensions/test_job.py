"""Jobs from Python and from magics, in a session without any configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import carrel
from carrel.extensions import job as extensions_job
from carrel.hub.errors import InvalidInput, NotFound

from ..fake_service import FakeService

NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeService]:
    with FakeService() as fake:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("CARREL_URL", fake.url)
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-session")
        monkeypatch.delenv("CARREL_TOKEN", raising=False)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "train.ipynb").write_text(NOTEBOOK)
        yield fake


def test_a_notebook_becomes_a_job_that_describes_itself(service: FakeService) -> None:
    job = carrel.submit("train.ipynb", {"lr": 0.1}, devices=1, time="30m", memory="1GiB",
                        labels={"sweep": "7"})  # fmt: skip  # grouped by meaning
    body = service.called("POST", "requests")[0]
    assert (body["parameters"], body["seconds"], body["memory_bytes"]) == ({"lr": 0.1}, 1800, 2**30)
    assert repr(job) == "<Job j-00000000: queued>"
    service.add_event(job.id, "cell_finished", index=0)
    service.logs[job.id] = b"hello"
    service.outputs[job.id] = NOTEBOOK.encode()
    service.files[job.id] = {"a/b.csv": b"1,2"}
    cause = {"code": "succeeded", "message": "It ended as it should."}
    service.change(job.id, state="succeeded", ended=True, cause=cause)
    assert [event.kind for event in job.events()] == ["cell_finished"]
    assert job.wait(10).state == "succeeded"
    assert job.cause is not None
    assert job.cause.code == "succeeded"
    assert job.log() == "hello"
    assert job.output().cells == []
    assert [(file.name, file.read()) for file in job.files()] == [("a/b.csv", b"1,2")]
    assert job.files()[0].save("here") == Path("here/a/b.csv")
    assert carrel.Job.find(job.id) == job
    with pytest.raises(NotFound):
        carrel.Job.find("j-9")


def test_a_command_is_a_list_and_works_in_this_folder(service: FakeService) -> None:
    carrel.run(["python", "train.py"])
    assert service.called("POST", "requests")[0]["command"] == ["python", "train.py"]
    carrel.run(["python", "train.py"], devices=1, model="NVIDIA H200")
    carrel.run(["python", "train.py"], secrets=["TOKEN", "KEY:env"])
    plain, new, secret = service.called("POST", "requests")
    assert not {"model", "secrets"} & set(plain), "an older service does not know them"
    assert new["model"] == "NVIDIA H200"
    assert secret["secrets"] == ["TOKEN", "KEY:env"]
    with pytest.raises(InvalidInput, match="bash"):
        carrel.run("python train.py")


def test_waiting_has_an_end(service: FakeService) -> None:
    job = carrel.submit("train.ipynb")
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
        job.wait(0.2)
    assert job.cancel().state == "cancelled"


def test_names_cannot_put_html_into_a_page(service: FakeService) -> None:
    service.add("j-1", notebook="<script>alert(1)</script>.ipynb", labels={"<b>": "<i>"})
    found = carrel.jobs(labels={"<b>": "<i>"})
    for shown in (found._repr_html_(), found[0]._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown


def test_a_new_token_gives_a_new_client(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = extensions_job.client_of()
    assert extensions_job.client_of() is first
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "another")
    assert extensions_job.client_of() is not first


def test_importing_carrel_loads_nothing_else() -> None:
    code = "import sys, carrel; print([m for m in sys.modules if m.startswith('carrel.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_magics_are_the_commands_of_the_terminal(
    service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "carrel")
        job = shell.run_line_magic("carrel", "submit train.ipynb --label sweep=7")
        assert job.id == "j-00000000"
        shell.run_line_magic("carrel", "ps")
        shell.run_line_magic("carrel", "cancel --label sweep=7 --yes")
        shell.run_line_magic("carrel", "nonsense")
        shell.run_line_magic("carrel", "submit missing.ipynb")
        shell.run_line_magic("carrel", "")
    finally:
        interactive.InteractiveShell.clear_instance()
    said = capsys.readouterr()
    assert "j-00000000 is cancelled." in said.out
    assert "%carrel submit train.ipynb" in said.out
    assert "%carrel nonsense does not exist." in said.err
    assert "missing.ipynb cannot be read" in said.err
    assert service.requests["j-00000000"]["state"] == "cancelled"


PIPELINE = """
[jobs.last]
command = "true"
workdir = "."
after = "first"

[jobs.first]
command = "true"
workdir = "."
"""


def test_a_pipeline_is_a_job_for_each_name(service: FakeService, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(PIPELINE)
    study = carrel.pipeline(tmp_path / "study.toml")
    assert list(study) == ["first", "last"]
    assert service.called("POST", "requests")[1]["after"] == [f"{study['first'].id}:ok"]
    again = carrel.run(["true"], workdir=".", after=[study["last"], "j-x:any"])
    assert service.called("POST", "requests")[2]["after"] == [study["last"].id, "j-x:any"]
    assert again.id != study["last"].id


def test_a_later_job_gets_values_of_an_earlier_one(service: FakeService) -> None:
    study = carrel.submit("train.ipynb")
    parameters = {"n": 3, "lr": study.result("best.lr"), "loss": study.result("report.the loss")}
    carrel.submit("train.ipynb", parameters, after=[study])
    body = service.called("POST", "requests")[1]
    assert body["parameters"] == {"n": 3}
    assert body["results"] == {"lr": f"{study.id}.best.lr", "loss": f"{study.id}.report.the loss"}
    with pytest.raises(InvalidInput, match="names no value of a job"):
        study.result("lr")
