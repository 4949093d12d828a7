"""Limits as users type them, parsed in the same way by command line and pages."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import parsers


@pytest.mark.parametrize("text", ["300h/term", "20h/week", "0.5h/week", "0h/term"])
def test_a_budget_is_shown_as_it_was_given(text: str) -> None:
    found = parsers.budget(text)
    assert parsers.budget_text(found.device_seconds, found.period) == text


@pytest.mark.parametrize(
    "text", ["300", "h/term", "300h/day", "-1h/week", "nanh/week", "infh/term"]
)
def test_an_invalid_budget_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"Invalid budget: .* Give device-hours per term or week"
    ):
        parsers.budget(text)


def test_devices_are_a_whole_number() -> None:
    assert (parsers.devices("0"), parsers.devices(" 7 "), parsers.devices("7", least=1)) == (
        0,
        7,
        7,
    )
    for text in ("", "-1", "1.5", "two", "100001", "9999999999", "\u0663"):
        with pytest.raises(InvalidInput, match="Give a whole number from 0 to 100,000"):
            parsers.devices(text)
    for text in ("0.5", "1.5", " 2.25"):
        with pytest.raises(InvalidInput, match="Only whole devices can be requested: no engine"):
            parsers.devices(text)
    with pytest.raises(InvalidInput, match="Give a whole number from 1 to 100,000"):
        parsers.devices("0", least=1)
