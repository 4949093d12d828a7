"""Receipts as crates, and their verification without a service."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.provenance.canonical_json import canonical
from carrel.hub.provenance.crate import Crate, signed_crate
from carrel.hub.provenance.notebook_hash import content_hash, source_hash, with_receipt
from carrel.hub.provenance.receipt import (
    HashedFileOut,
    HashedNotebookOut,
    InputFileOut,
    InputsOut,
    JobReceiptOut,
    ReportedOut,
)
from carrel.hub.provenance.signature import SigningKey
from carrel.hub.provenance.verification import NotVerified, verify

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
NOTEBOOK: dict[str, Any] = {
    "cells": [{"cell_type": "code", "source": ["print(", "1)"], "outputs": [{"text": "ü\n"}]}],
    "metadata": {"carrel": {"lease": "l-1"}, "loss": float("nan")},
    "nbformat": 4,
    "nbformat_minor": 5,
}
RECEIPT = JobReceiptOut(
    site="http://127.0.0.1:8000/",
    key=KEY.public.id,
    job="j-1",
    what="notebook",
    owner="ada",
    group="cs101",
    state="succeeded",
    submitted_at=1.0,
    started_at=2.5,
    ended_at=9.0,
    parameters={"lr": 0.1, "a name": [1, None]},
    notebook=HashedNotebookOut(name="train.ipynb", sha256="0" * 64),
    output=HashedNotebookOut(name="out.ipynb", content_sha256=content_hash(NOTEBOOK)),
    files=[HashedFileOut(name="plots/ü #1.png", size=3, sha256="1" * 64)],
    reported=ReportedOut(inputs=InputsOut(files=[InputFileOut(path="home/x.csv", size=4)])),
)


def crate() -> Crate:
    return signed_crate(RECEIPT, KEY)


def entity(value: Crate, name: str) -> dict[str, Any]:
    (found,) = [each for each in value["@graph"] if each["@id"] == name]
    return found


def text(value: object) -> bytes:
    return json.dumps(value, indent=3).encode()


def test_a_receipt_is_valid_however_its_json_is_written() -> None:
    for content in (text(crate()), canonical(crate())):
        found = verify(content, KEY.public)
        assert (found.receipt, found.known, found.notebook) == (RECEIPT, True, None)
    assert not verify(text(crate())).known


def test_the_file_is_an_ro_crate() -> None:
    made = crate()
    about = entity(made, "ro-crate-metadata.json")
    assert about["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    run = entity(made, "#run")
    assert (run["@type"], run["agent"]) == ("CreateAction", {"@id": "#user-ada"})
    assert run["startTime"] == "1970-01-01T00:00:02+00:00"
    names = {each["@id"] for each in made["@graph"]}
    assert {
        "input/train.ipynb",
        "out.ipynb",
        "home/x.csv",
        "files/plots/%C3%BC%20%231.png",
    } <= names
    # Flat: an entity refers to others by id only.
    for each in made["@graph"]:
        for value in each.values():
            for part in value if isinstance(value, list) else [value]:
                assert not isinstance(part, dict) or set(part) == {"@id"}


def edit_text(value: Crate) -> None:
    found = entity(value, "#receipt")
    found["text"] = found["text"].replace('"owner":"ada"', '"owner":"eve"')


def edit_graph(value: Crate) -> None:
    entity(value, "#run")["endTime"] = "1970-01-01T00:00:03+00:00"


def add_entity(value: Crate) -> None:
    value["@graph"].append({"@id": "#more", "@type": "Thing"})


def add_key(value: Crate) -> None:
    value["note"] = "more"


def no_signature(value: Crate) -> None:
    del entity(value, "#signature")["value"]


@pytest.mark.parametrize("edit", [edit_text, edit_graph, add_entity, add_key, no_signature])
def test_an_edited_receipt_is_refused(edit: Callable[[Crate], None]) -> None:
    made = crate()
    edit(made)
    with pytest.raises(NotVerified, match="was edited"):
        verify(text(made), KEY.public)


def test_the_receipt_of_another_site_is_refused() -> None:
    forged = signed_crate(RECEIPT, OTHER)
    with pytest.raises(NotVerified, match=f"signed with the key {OTHER.public.id}"):
        verify(text(forged), KEY.public)
    # The name of the right key alone does not help.
    entity(forged, "#signature")["identifier"] = KEY.public.base64
    with pytest.raises(NotVerified, match="was edited"):
        verify(text(forged), KEY.public)


def test_two_signatures_or_two_receipts_are_refused() -> None:
    made = crate()
    made["@graph"].append(dict(entity(made, "#receipt")))
    with pytest.raises(InvalidInput, match="2 entities #receipt"):
        verify(text(made))


def test_a_name_that_occurs_twice_is_refused() -> None:
    twice = text(crate()).replace(b'"@graph"', b'"@graph": [], "@graph"', 1)
    with pytest.raises(InvalidInput, match="occurs twice"):
        verify(twice)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{}", b'{"cells": []}', b"[" * 10**5])
def test_another_file_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        verify(content)


def test_an_executed_notebook_is_valid_with_its_receipt_and_not_when_it_was_changed() -> None:
    executed = with_receipt(NOTEBOOK, crate())
    found = verify(text(executed), KEY.public)
    assert found.notebook is not None
    assert source_hash(found.notebook) == source_hash(NOTEBOOK)
    changed = json.loads(text(executed))
    changed["cells"][0]["outputs"][0]["text"] = "2\n"
    with pytest.raises(NotVerified, match="notebook was changed after j-1"):
        verify(text(changed), KEY.public)


def test_a_signature_that_is_no_base64_is_refused() -> None:
    made = crate()
    entity(made, "#signature")["value"] = base64.b64encode(b"short").decode() + "!"
    with pytest.raises(NotVerified):
        verify(text(made))
