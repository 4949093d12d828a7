"""The file advice.json is untrusted: the notebook of a probe job can write anything into it."""

from __future__ import annotations

import json

import pytest

from carrel.hub.client.probe_result import ProbeResult
from carrel.hub.errors import InvalidInput


def test_seconds_that_no_float_holds_are_refused_as_unreadable() -> None:
    content = b'{"sentences": [], "run_seconds": 1' + b"0" * 400 + b"}"
    with pytest.raises(InvalidInput):
        ProbeResult.from_json(content)


@pytest.mark.parametrize("seconds", ["1e308", "1e8", "-1", "0", "NaN", "Infinity"])
def test_implausible_seconds_count_as_unknown(seconds: str) -> None:
    content = f'{{"sentences": ["a"], "run_seconds": {seconds}}}'.encode()
    assert ProbeResult.from_json(content) == ProbeResult(sentences=("a",))


def test_lone_surrogates_are_dropped_from_texts() -> None:
    content = b'{"sentences": ["a\\ud800b"], "parameters": {"x\\ud800": "y\\udfff"}}'
    expected = ProbeResult(sentences=("ab",), parameters={"x": "y"})
    assert ProbeResult.from_json(content) == expected


def test_number_and_length_of_entries_are_limited() -> None:
    many = {f"p{number}": number for number in range(50_000)}
    content = json.dumps({"sentences": ["a" * 5000] * 100 + ["b"] * 50_000, "parameters": many})
    found = ProbeResult.from_json(content.encode())
    assert (len(found.sentences), len(found.parameters)) == (100, 100)
    assert {len(each) for each in found.sentences} == {2000}
