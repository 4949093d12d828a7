"""Receipts of jobs that the service has run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from carrel.hub.provenance.receipt import JobReceiptOut, UsedDeviceOut
from carrel.hub.provenance.verification import verify
from carrel.hub.receipts import notebook_facts
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.states import State

from ..doubles import STRANGER, STUDENT1, device
from ..notebooks import notebook
from ..requests.samples import command, job, named
from ..web.fakes import API
from ..web.site import Site, site
from .ended_jobs import ended

__all__ = ["site"]
REPORT = {
    "python": "3.11.2",
    "packages": ["numpy==2.1.0"],
    "git": {"commit": "a" * 40, "differs": True},
    "inputs": {"how": "inotify", "files": [{"path": "home/x.csv", "size": 3, "sha256": "b" * 64}]},
}


def fetched(site: Site, made: str) -> JobReceiptOut:
    answer = site.api(STUDENT1).get(f"{API}/requests/{made}/receipt")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/ld+json"
    return verify(answer.content, site.context.signing_key.public).receipt


def test_a_notebook_has_a_receipt_with_what_the_service_knows_and_what_was_reported(
    site: Site,
) -> None:
    source = notebook("import random\nrandom.seed(7)", "%time x = 1")
    made = ended(
        site,
        job(notebook=named("train.ipynb", source)),
        report=REPORT,
        output_ipynb=notebook("print(1)"),
    )
    receipt = fetched(site, made)
    assert (receipt.job, receipt.owner, receipt.group) == (made, "student1", "cs101")
    assert (receipt.what, receipt.state, receipt.code) == ("notebook", "succeeded", "succeeded")
    assert receipt.parameters == {"lr": 0.05}
    assert [each.call for each in receipt.seeds] == ["random.seed(7)"]
    assert (receipt.devices[0].id, receipt.device_seconds) == ("SIM-0", 5.0)
    assert [(each.number, each.state) for each in receipt.attempts] == [(1, "succeeded")]
    assert receipt.notebook is not None
    assert len(receipt.notebook.source_sha256) == 64
    assert receipt.reported is not None
    assert receipt.reported.git is not None
    assert receipt.reported.git.differs
    assert receipt.reported.inputs.files[0].path == "home/x.csv"


def test_what_is_known_of_a_device_is_dated_by_the_receipt(site: Site) -> None:
    made = ended(site, job(), report=REPORT | {"drivers": ["NVIDIA 550"]})
    site.clock.pass_(86_400)
    site.context.store.sync_devices("local", [replace(device(0), model="Replaced GPU")])
    receipt = fetched(site, made)
    assert receipt.ended_at is not None
    assert receipt.written_at == site.clock.now
    assert receipt.written_at - receipt.ended_at > 80_000
    assert receipt.devices == [
        UsedDeviceOut(
            id="SIM-0", node="local", model="Replaced GPU", memory_bytes=16 << 30, simulated=True
        )
    ]
    assert receipt.reported is not None
    assert receipt.reported.drivers == ["NVIDIA 550"]
    panel = site.page(STUDENT1).get(f"/services/carrel/requests/{made}/receipt").text
    assert "as of the receipt" in panel


def test_the_executed_notebook_contains_its_receipt(site: Site) -> None:
    made = ended(site, job(), output_ipynb=notebook("print(1)"))
    answer = site.api(STUDENT1).get(f"{API}/requests/{made}/output")
    found = verify(answer.content, site.context.signing_key.public)
    assert (found.receipt.job, found.notebook is not None) == (made, True)


def test_a_failed_command_has_a_receipt_too(site: Site) -> None:
    made = ended(site, command(), state=State.FAILED)
    receipt = fetched(site, made)
    assert (receipt.what, receipt.state, receipt.code) == ("command", "failed", "cell_error")
    assert (receipt.command, receipt.output, receipt.reported) == (
        ["python", "train.py"],
        None,
        None,
    )


@pytest.mark.parametrize(
    "report", ["no object", {"git": {"commit": "HEAD; rm"}}, {"packages": ["x" * 5000]}]
)
def test_a_report_that_is_not_in_its_form_is_left_out(site: Site, report: object) -> None:
    assert fetched(site, ended(site, command(), report=report)).reported is None


def test_a_receipt_is_written_once_and_a_planted_one_is_not_answered(site: Site) -> None:
    made = ended(site, command())
    path = site.context.files.input_path(made).parent / "receipt.json"
    first = site.api(STUDENT1).get(f"{API}/requests/{made}/receipt").content
    assert json.loads(path.read_text()) == json.loads(first)
    path.write_text(path.read_text().replace("student1", "other-user"))
    assert fetched(site, made).owner == "student1"


def test_the_receipt_of_another_job_in_its_place_is_not_answered(site: Site) -> None:
    made, other = ended(site, command()), ended(site, command())
    fetched(site, other)
    folder = site.context.files.input_path(made).parent
    stored = (site.context.files.input_path(other).parent / "receipt.json").read_text()
    (folder / "receipt.json").write_text(stored)
    assert fetched(site, made).job == made


def test_a_job_that_has_not_ended_or_is_hidden_has_none(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    answer = site.api(STUDENT1).get(f"{API}/requests/{made.id}/receipt")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert site.api(STRANGER).get(f"{API}/requests/{made.id}/receipt").status_code == 404


def test_the_page_of_a_job_shows_its_receipt(site: Site) -> None:
    made = ended(site, job(), report=REPORT, output_ipynb=notebook("1"))
    page = site.page(STUDENT1).get(f"/services/carrel/requests/{made}").text
    assert f"/api/v1/requests/{made}/receipt" in page
    panel = site.page(STUDENT1).get(f"/services/carrel/requests/{made}/receipt").text
    for text in ("Recorded by this site", "Reported by the job", "home/x.csv", "a" * 12):
        assert text in panel


def test_a_large_notebook_is_hashed_as_a_small_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = job(notebook=named("train.ipynb", notebook("import random\nrandom.seed(7)")))
    executed = notebook("print(1)")
    small, large = (ended(site, body, output_ipynb=executed) for _ in range(2))
    first = fetched(site, small)
    monkeypatch.setattr(notebook_facts, "LARGE_BYTES", 0)
    second = fetched(site, large)
    assert (second.notebook, second.output, second.seeds) == (
        first.notebook,
        first.output,
        first.seeds,
    )


def test_a_notebook_that_exceeds_the_limits_is_hashed_as_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notebook_facts, "LARGE_BYTES", 0)
    at_once = replace(notebook_facts.DESCRIBING, seconds=0.0)
    monkeypatch.setattr(notebook_facts, "DESCRIBING", at_once)
    found = notebook_facts.notebook_facts(b"{}")
    assert found == notebook_facts.NotebookFacts(note="too large: its content was not hashed")
