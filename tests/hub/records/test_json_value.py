"""JSON that is not trusted has a bounded depth."""

from __future__ import annotations

import pytest

from carrel.hub.records.json_value import MAX_DEPTH, parse_json


def nested(depth: int, leaf: str = "1") -> str:
    return '{"a": [' * (depth // 2) + leaf + "]}" * (depth // 2)


@pytest.mark.parametrize("leaf", ["1", "", '"text"'])
def test_the_largest_depth_is_parsed(leaf: str) -> None:
    assert isinstance(parse_json(nested(MAX_DEPTH, leaf)), dict)


@pytest.mark.parametrize(
    "text",
    [nested(MAX_DEPTH + 2), nested(900), nested(200_000), "[" * 101 + "]" * 101, "{", "9" * 5000],
)
def test_all_other_text_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
