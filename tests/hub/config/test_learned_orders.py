"""Learned orders in the state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.config.learned_orders import load_learned_order, usable_learned_order
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder

ORDER = LearnedOrder(name="philly", weights=WEIGHTS * (0.5,))


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    made = StateFolder.at(tmp_path)
    made.learned_orders.mkdir()
    return made


def test_the_order_of_the_settings_is_loaded(state: StateFolder) -> None:
    (state.learned_orders / "philly.json").write_text(ORDER.as_json())
    assert usable_learned_order(state, "philly") == ORDER
    assert usable_learned_order(state, "") is None


@pytest.mark.parametrize("content", ["{", None])
def test_an_order_that_cannot_be_used_is_reported_once_and_ignored(
    state: StateFolder, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    if content is not None:
        (state.learned_orders / "philly.json").write_text(content)
    assert usable_learned_order(state, "philly") is None
    (said,) = caplog.messages
    assert str(state.learned_orders / "philly.json") in said
    assert "Requests are ordered without it." in said


@pytest.mark.parametrize("name", ["../secrets", "A", "", "a/b", ".", 50 * "a"])
def test_a_name_is_no_path(state: StateFolder, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot have the name"):
        load_learned_order(state, name)
