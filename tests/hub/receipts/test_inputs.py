"""Inputs of receipts that are compared with the files that are there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from carrel.hub.provenance.receipt import InputFileOut, InputsOut, JobReceiptOut, ReportedOut
from carrel.hub.receipts.inputs import InputComparison, InputFolders


def receipt(*files: InputFileOut) -> JobReceiptOut:
    return JobReceiptOut(
        site="https://site.example.edu/",
        key="k",
        job="j-1",
        what="command",
        owner="student1",
        group="cs101",
        state="succeeded",
        submitted_at=1.0,
        reported=ReportedOut(inputs=InputsOut(files=list(files))),
    )


def listed(name: str, content: bytes) -> InputFileOut:
    sha256 = hashlib.sha256(content).hexdigest()
    return InputFileOut(path=f"home/{name}", size=len(content), sha256=sha256)


def test_all_files_together_have_one_budget_also_the_same_one_listed_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"123456")
    a, b, small = listed("a", b"123456"), listed("b", b"654321"), listed("small", b"1")
    (tmp_path / "small").write_bytes(b"2")
    folders = InputFolders(home=tmp_path, most_bytes=8)
    assert folders.compared(receipt(a, b, a, small)) == InputComparison(
        changes=["The input home/small has changed."],
        unchecked=["home/b: too large to compare", "home/a: too large to compare"],
    )


def test_a_file_of_another_size_has_changed_whatever_its_size(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", 1 << 40)
    sparse = InputFileOut(path="home/a", size=1 << 40, sha256="0" * 64)
    folders = InputFolders(home=tmp_path)
    assert folders.compared(receipt(listed("a", b"1"))).changes == ["The input home/a has changed."]
    assert folders.compared(receipt(*[sparse] * 200)) == InputComparison(
        changes=[], unchecked=["home/a: too large to compare"] * 200
    )
