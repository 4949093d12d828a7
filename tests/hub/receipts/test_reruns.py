"""Jobs that run again by their receipts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.provenance.canonical_json import parse_object
from carrel.hub.provenance.crate import read_receipt, signed_crate
from carrel.hub.provenance.notebook_hash import content_hash, source_hash, with_receipt
from carrel.hub.provenance.receipt import HashedNotebookOut, JobReceiptOut
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas.secrets.bodies import SecretIn
from carrel.hub.secrets.vault import SecretVault
from carrel.spawners.fake import FakeBackend

from ..doubles import STRANGER, STUDENT1, TEACHER
from ..images import NEW, OLD, image
from ..notebooks import notebook
from ..requests.samples import command, job, named
from ..web.fakes import API, PREFIX
from ..web.site import Site, made_site, site
from .ended_jobs import ended

__all__ = ["site"]
SOURCE = notebook("lr = 0.1", "print(lr)")


def reading(site: Site, *contents: str) -> dict[str, Any]:
    """Return the report of a job that has read these files of the student's home."""
    home = site.context.files.home(STUDENT1.name)
    files = []
    for number, content in enumerate(contents):
        (home / f"{number}.csv").write_text(content)
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        files.append({"path": f"home/{number}.csv", "size": len(content), "sha256": sha256})
    return {"inputs": {"files": files}}


def rerun(site: Site, **body: Any) -> Any:
    return site.page(STUDENT1).post(f"{API}/reruns", json=body)


def receipt(site: Site, made: str) -> str:
    return site.api(STUDENT1).get(f"{API}/requests/{made}/receipt").text


def notebook_of_another_site(other: Site, text: str = SOURCE, **values: Any) -> str:
    """Return a notebook that the other site has signed with a receipt of these values."""
    content = parse_object(text.encode(), "The notebook")
    hashes = {"content_sha256": content_hash(content), "source_sha256": source_hash(content)}
    hashed = HashedNotebookOut(name="train.ipynb", **hashes)
    key = other.context.signing_key
    receipt = JobReceiptOut.model_validate(
        {
            "site": "https://other.example.edu/",
            "key": key.public.id,
            "job": "j-1",
            "what": "notebook",
            "owner": "student1",
            "group": "cs101",
            "state": "succeeded",
            "submitted_at": 1.0,
            "notebook": hashed,
            "output": hashed,
            **values,
        }
    )
    return json.dumps(with_receipt(content, signed_crate(receipt, key)))


def test_a_job_runs_again_with_the_same_notebook_parameters_and_limits(site: Site) -> None:
    old = ended(site, job(), report=reading(site, "1"), output_ipynb=SOURCE)
    answer = rerun(site, job=old)
    assert answer.status_code == 201
    found = answer.json()
    assert (found["rerun_of"], found["changes"], found["unchecked"]) == (old, [], [])
    made = site.context.store.request(found["request"]["id"])
    before = site.context.store.request(old)
    assert made.job is not None
    assert before.job is not None
    assert (made.job.parameters, made.seconds, made.devices) == ({"lr": 0.05}, 600, 1)
    assert made.job.rerun_of == old
    files = site.context.files
    assert files.input_path(made.id).read_bytes() == files.input_path(old).read_bytes()


def test_it_says_which_inputs_are_gone_or_have_changed_and_runs_if_accepted(site: Site) -> None:
    old = ended(site, command(), report=reading(site, "1", "2", "3"))
    home = site.context.files.home(STUDENT1.name)
    (home / "0.csv").unlink()
    (home / "1.csv").write_text("X")
    expected = ["The input home/0.csv is gone.", "The input home/1.csv has changed."]
    answer = rerun(site, job=old)
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    for sentence in expected:
        assert sentence in answer.json()["detail"]
    assert rerun(site, job=old, dry_run=True).json()["changes"] == expected
    made = rerun(site, job=old, accept_changes=True).json()["request"]["id"]
    again = site.context.store.request(made).job
    assert again is not None
    assert again.accepted_changes == tuple(expected)


def test_the_page_of_a_job_has_a_button_that_says_what_has_changed(site: Site) -> None:
    old = ended(site, command(), report=reading(site, "1"))
    (site.context.files.home(STUDENT1.name) / "0.csv").unlink()
    page, address = site.page(STUDENT1), f"{PREFIX}requests/{old}"
    assert f'action="{address}/rerun"' in page.get(address).text
    refused = page.post(f"{address}/rerun", data={"csrf": ""})
    assert refused.status_code == 409
    assert "The input home/0.csv is gone." in refused.text
    accepted = page.post(f"{address}/rerun", data={"csrf": "", "accept": "yes"})
    assert accepted.status_code == 303
    made = site.context.store.request(accepted.headers["location"].rpartition("/")[2]).job
    assert made is not None
    assert made.accepted_changes == ("The input home/0.csv is gone.",)


def test_an_input_without_a_hash_is_named_as_not_compared(site: Site) -> None:
    big = {"path": "home/big.bin", "size": 9, "note": "too large to be hashed: 9 bytes"}
    old = ended(site, command(), report={"inputs": {"files": [big], "left_out": 3}})
    assert rerun(site, job=old).json()["unchecked"] == [
        "home/big.bin: too large to be hashed: 9 bytes",
        "3 further files were read",
    ]


def test_a_path_that_leads_outside_is_not_read(site: Site) -> None:
    report = reading(site, "1")
    report["inputs"]["files"][0]["path"] = "home/../student1/0.csv"
    old = ended(site, command(), report=report)
    assert "is gone" in rerun(site, job=old).json()["detail"]


def test_the_data_of_a_course_is_compared_for_its_members_only(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "courses" / "cs101" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "exam.csv").write_text("1")
    read = {"path": "course/exam.csv", "size": 1, "sha256": hashlib.sha256(b"1").hexdigest()}
    old = ended(site, command(), report={"inputs": {"files": [read]}})
    assert rerun(site, job=old, dry_run=True).json()["changes"] == []
    site.context.store.put_group(Group(name="cs102", max_devices=4))
    for group in ("cs102", "cs103"):
        answer = rerun(site, job=old, dry_run=True, group=group)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_a_member")


def test_an_edited_receipt_is_refused(site: Site) -> None:
    text = receipt(site, ended(site, command()))
    assert rerun(site, file=text).status_code == 201
    answer = rerun(site, file=text.replace("train.py", "other.py"))
    assert (answer.status_code, answer.json()["code"]) == (400, "not_verified")


def test_a_notebook_that_changed_at_the_site_is_named(site: Site) -> None:
    old = ended(site, job(), output_ipynb=SOURCE)
    receipt(site, old)
    site.context.files.put_input(old, notebook("print(2)").encode())
    assert (
        "The submitted notebook train.ipynb has changed." in rerun(site, job=old).json()["detail"]
    )


def test_a_job_of_another_user_does_not_run(site: Site) -> None:
    old = ended(site, command())
    text = receipt(site, old)
    for body in ({"job": old}, {"file": text}):
        answer = site.page(STRANGER).post(f"{API}/reruns", json=body)
        assert answer.status_code == 404


def test_a_teacher_who_repeats_the_job_of_a_student_does_not_lend_it_secrets(site: Site) -> None:
    vault = SecretVault(site.context)
    for who in (STUDENT1, TEACHER):
        vault.put(who, "TOKEN", SecretIn.model_validate({"value": "s3cret-value"}))
    old = ended(site, command(secrets=["TOKEN:env"]))
    page, change = site.page(TEACHER), "Its secrets of student1 are left out: TOKEN:env=TOKEN."
    found = page.post(f"{API}/reruns", json={"job": old, "dry_run": True}).json()
    assert found["changes"] == [change]
    again = page.post(f"{API}/reruns", json={"job": old, "accept_changes": True}).json()
    made = site.context.store.request(again["request"]["id"]).job
    assert made is not None
    assert (made.secrets, made.accepted_changes) == ((), (change,))
    copied = page.post(f"{PREFIX}requests/{old}/again", data={"csrf": ""})
    assert copied.status_code == 303
    made = site.context.store.request(copied.headers["location"].rpartition("/")[2]).job
    assert made is not None
    assert made.secrets == ()
    form = page.get(f"{PREFIX}submit?again={old}").text
    assert "train.py" in form
    assert "not copied: TOKEN:env=TOKEN." in form
    assert form.count("TOKEN:env=TOKEN") == 1, "its field is empty"
    assert rerun(site, job=old).json()["request"]["secrets"] == ["TOKEN:env=TOKEN"]


@pytest.mark.parametrize("body", [{}, {"job": "j-1", "file": "{}"}, {"file": "{}"}])
def test_one_job_or_one_file_with_a_receipt_is_needed(site: Site, body: dict[str, str]) -> None:
    assert rerun(site, **body).status_code == 400


class TestAnotherSite:
    @pytest.fixture
    def other(self, tmp_path: Path) -> Iterator[Site]:
        (tmp_path / "other").mkdir()
        with made_site(tmp_path / "other") as made:
            yield made

    def test_an_executed_notebook_runs_there_and_its_origin_is_a_change(
        self, site: Site, other: Site
    ) -> None:
        old = ended(site, job(notebook=named("train.ipynb", SOURCE)), output_ipynb=SOURCE)
        executed = site.api(STUDENT1).get(f"{API}/requests/{old}/output").text
        answer = rerun(other, file=executed)
        assert answer.status_code == 409
        assert "The receipt was signed by http://127.0.0.1:8000/" in answer.json()["detail"]
        made = rerun(other, file=executed, accept_changes=True).json()
        assert made["rerun_of"] == old
        assert made["request"]["parameters"] == {"lr": 0.05}

    def test_a_receipt_that_requests_secrets_gets_none(self, site: Site, other: Site) -> None:
        vault = SecretVault(site.context)
        vault.put(STUDENT1, "TOKEN", SecretIn.model_validate({"value": "s3cret-value"}))
        executed = notebook_of_another_site(
            other,
            secrets=["TOKEN:file"],
            requested={"seconds": 60, "secrets": ["TOKEN"], "after": ["j-none"]},
        )
        answer = rerun(site, file=executed, accept_changes=True)
        assert answer.status_code == 201
        made = answer.json()["request"]
        assert (made["secrets"], made["seconds"], made["after"]) == ([], 60, [])
        assert "It used 1 secret there, which it does not get here." in answer.json()["changes"]

    @pytest.mark.parametrize(
        ("text", "values", "expected"),
        [
            (SOURCE, {"requested": {"seconds": "soon"}}, "seconds"),
            (SOURCE, {"group": ""}, "group"),
            (SOURCE, {"parameters": {"lr": float("nan")}}, "parameters"),
            (SOURCE, {"image": "x" * 200}, "image"),
            ('{"metadata": {}, "cells": [{"source": "", "metadata": null}]}', {}, "metadata"),
        ],
    )
    def test_a_receipt_that_describes_no_job_is_refused(
        self, site: Site, other: Site, text: str, values: dict[str, Any], expected: str
    ) -> None:
        answer = rerun(site, file=notebook_of_another_site(other, text, **values))
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
        assert expected in answer.json()["detail"]

    def test_a_receipt_without_its_notebook_does_not(self, site: Site, other: Site) -> None:
        old = ended(site, job(), output_ipynb=SOURCE)
        assert "its notebook is not here" in rerun(other, file=receipt(site, old)).json()["detail"]
        ran = receipt(site, ended(site, command()))
        assert "whose files are there" in rerun(other, file=ran).json()["detail"]


def test_a_missing_image_is_named_with_the_one_that_would_be_used(site: Site) -> None:
    backend = site.context.backend
    assert isinstance(backend, FakeBackend)
    first, second = image("torch", OLD, 1.0, default=True), image("torch", NEW, 2.0, default=True)
    backend.built = (first,)
    old = ended(site, command())
    found: JobReceiptOut = read_receipt(parse_object(receipt(site, old).encode(), "The receipt"))
    assert found.image == first.reference
    backend.built = (second,)
    answer = rerun(site, job=old)
    assert answer.status_code == 409
    assert (
        f"The image {first.reference} is gone: it would run in {second.reference}."
        in answer.json()["detail"]
    )
    made = rerun(site, job=old, accept_changes=True).json()["request"]
    assert made["image"] == second.reference
    backend.built = None
    assert "jobs of this site run without images" in rerun(site, job=old).json()["detail"]
