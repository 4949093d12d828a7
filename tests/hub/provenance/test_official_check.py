"""Receipts of official checks, and ``carrel verify`` on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from carrel.hub.cli import cli
from carrel.hub.provenance.official_check import OfficiallyCheckedOut, signed_check
from carrel.hub.provenance.signature import SigningKey

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
CHECK = OfficiallyCheckedOut(
    id="g-1",
    course="cs101",
    assignment="ps1",
    version=2,
    person="zoë",
    files_sha256="0" * 64,
    tests_sha256="1" * 64,
    image="",
    asked_at=1.5,
    outcome="not passed",
    points=1.5,
    max_points=2.0,
)
RECEIPT = signed_check(CHECK, KEY)


def verified(folder: Path, receipt: str, key: SigningKey | None, *options: str) -> Any:
    (folder / "ps1.check.json").write_text(receipt)
    if key is not None:
        (folder / "site.pem").write_text(key.public.pem)
        options = (*options, "--key", str(folder / "site.pem"))
    return CliRunner().invoke(cli, ["verify", str(folder / "ps1.check.json"), *options])


def test_a_receipt_is_valid_however_its_json_is_written(tmp_path: Path) -> None:
    for text in (RECEIPT, json.dumps(json.loads(RECEIPT), indent=2)):
        shown = verified(tmp_path, text, KEY)
        assert shown.exit_code == 0
        first, second, third = shown.output.splitlines()
        assert first == "Valid: official check g-1 of ps1 of cs101: not passed, 1.5 of 2 points."
        assert second.startswith("Asked for by zoë ")
        assert second.endswith(f": version 2, files with the SHA-256 {'0' * 64}.")
        assert third == f"Signed with the key {KEY.public.id}."
    found = json.loads(verified(tmp_path, RECEIPT, KEY, "--json").output)
    assert (found["valid"], found["check"]) == (True, CHECK.model_dump())


@pytest.mark.parametrize(
    ("receipt", "key", "why"),
    [
        (RECEIPT.replace('"points":1.5', '"points":2.0'), KEY, "The receipt was edited"),
        (RECEIPT, OTHER, "which is not that of the expected site"),
        (RECEIPT.replace(KEY.public.id, OTHER.public.id), OTHER, "The receipt was edited"),
        (RECEIPT, None, "is verified with the public key of the site"),
        (signed_check(CHECK, SigningKey("damaged")), KEY, "The receipt is not signed"),
        ('{"check": 1, "check": 2, "signature": ""}', KEY, "a name occurs twice"),
    ],
)
def test_what_the_site_has_not_signed_is_refused(
    tmp_path: Path, receipt: str, key: SigningKey | None, why: str
) -> None:
    shown = verified(tmp_path, receipt, key)
    assert shown.exit_code != 0
    assert why in shown.output
