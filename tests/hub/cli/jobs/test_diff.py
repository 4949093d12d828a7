"""``carrel diff``: what it sends, what it prints, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import carrel as package
from carrel.hub.client import Client
from carrel.hub.comparison.facts import RunFacts
from carrel.hub.comparison.runs import Comparison
from carrel.hub.comparison.schemas import ComparedRunOut, ComparisonIn, ComparisonOut
from carrel.hub.comparison.tolerance import Tolerance

from ..invocation import NOTEBOOK, Carrel, carrel, service

__all__ = ["carrel", "service"]


def _code(source: str, printed: str) -> dict[str, object]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}]
    return {"cell_type": "code", "id": source, "source": source, "outputs": outputs}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[ComparisonIn]:
    """Answer comparisons with two runs whose numbers differ by a tenth; return what was sent."""
    calls = list[ComparisonIn]()

    def compare(_: Client, wanted: ComparisonIn) -> ComparisonOut:
        calls.append(wanted)
        a, b = (RunFacts(about=ComparedRunOut(name=name)) for name in ("j-aaaaaaaa", "b\x1b"))
        tolerance = Tolerance(relative=wanted.tolerance.relative)
        return Comparison(a, b, tolerance).of_notebooks(
            [_code("train()", "start\nloss 1.0\n"), _code("same", "")],
            [_code("train()", "start\nloss 1.1\n"), _code("same", ""), _code("new()\nmore", "")],
        )

    monkeypatch.setattr(Client, "compare", compare)
    return calls


@pytest.mark.usefixtures("sent")
def test_differences_are_printed_with_signs_and_exit_1(carrel: Carrel) -> None:
    found = carrel("diff", "j-aaaaaaaa", "j-bbbbbbbb")
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "--- j-aaaaaaaa",
        "+++ b?",
        "",
        "Cell 1: output changed",
        "  stdout: 1 line changed. 1 number differs, by at most 0.1 (relative 0.0909).",
        "    start",
        "  - loss 1.0",
        "  + loss 1.1",
        "",
        "Cell 3 of the second run: added",
        "  + new()",
        "  + more",
        "",
        "The runs differ: 1 source, 2 outputs.",
    ]


def test_a_file_is_sent_with_the_tolerance(carrel: Carrel, sent: list[ComparisonIn]) -> None:
    found = carrel("diff", "j-aaaaaaaa", "train.ipynb", "-t", "0.5", "--json")
    (wanted,) = sent
    assert (wanted.a.request, wanted.b.notebook, wanted.b.name) == (
        "j-aaaaaaaa",
        NOTEBOOK,
        "train.ipynb",
    )
    assert wanted.tolerance.relative == 0.5
    assert json.loads(found.stdout)["summary"]["added"] == 1


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("j-aaaaaaaa", "missing.ipynb"), 6, "neither the id of a job nor a file"),
        (("j-aaaaaaaa", "broken.ipynb"), 6, "is not UTF-8"),
        (("j-aaaaaaaa", "large.ipynb"), 6, "60 MiB, which is too large"),
        (("j-aaaaaaaa", "empty.ipynb"), 6, "is empty"),
        (("j-aaaaaaaa",), 2, "Missing argument"),
        (("j-aaaaaaaa", "j-bbbbbbbb", "-t", "-1"), 2, "-1"),
        (("j-aaaaaaaa", "j-bbbbbbbb", "-t", "nan"), 6, "nan"),
    ],
)
def test_what_cannot_be_compared_has_a_status_above_1(
    carrel: Carrel, tmp_path: Path, arguments: tuple[str, ...], status: int, sentence: str
) -> None:
    (tmp_path / "broken.ipynb").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.ipynb").touch()
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate(60 << 20)
    found = carrel("diff", *arguments)
    assert (found.exit_code, sentence in found.output) == (status, True)


def test_runs_are_compared_from_python(
    carrel: Carrel, sent: list[ComparisonIn], tmp_path: Path
) -> None:
    found = package.diff("j-aaaaaaaa", tmp_path / "train.ipynb", relative=0.2, ignore=["sources"])
    assert (sent[0].a.request, sent[0].b.name) == ("j-aaaaaaaa", "train.ipynb")
    assert (sent[0].ignore, found.equal) == (["sources"], False)
