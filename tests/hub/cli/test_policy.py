"""``carrel policy`` on a state folder."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.shadow_order.records import ShadowDecision
from carrel.hub.shadow_order.store import ShadowStore
from carrel.hub.store import open_store

from .admin.invocation import carrel, refusal

DECISION = ShadowDecision(
    at=1e9, queued=7, started=("j-a",), would_start=("j-b", "j-c"), sooner=-90.0
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    Settings(learned_order="philly").save(found)
    monkeypatch.setenv("CARREL_STATE", str(found.root))
    found.learned_orders.mkdir()
    order = LearnedOrder(name="philly", weights=WEIGHTS * (0.5,))
    (found.learned_orders / "philly.json").write_text(order.as_json())
    return found


def record(state: StateFolder) -> None:
    with closing(open_store(state.database)) as store:
        shadows = ShadowStore(store.transactions)
        run = shadows.current()
        assert run is not None
        shadows.record(run, DECISION)
        shadows.record(run, None)


def test_a_learned_order_is_tried_in_shadow(state: StateFolder) -> None:
    assert "None was tried in shadow." in carrel("policy", "show")
    assert "those of philly" in carrel("policy", "shadow", "philly")
    record(state)
    shown = carrel("policy", "show")
    assert "Learned order in use: philly" in shown
    assert "2 decisions compared; in 1 (50%) other requests would have started." in shown
    assert "j-a      j-b, j-c            -1 min 30 s" in shown
    found = json.loads(carrel("policy", "show", "--json"))
    assert found["decisions"][0]["would_start"] == ["j-b", "j-c"]
    assert (found["in_use"], found["shadow"]["differing"]) == ("philly", 1)
    assert json.loads(carrel("policy", "shadow", "--off", "--json")) == {"shadow": None}
    assert "No learned order was compared." in carrel("policy", "shadow", "--off")
    assert " until " in carrel("policy", "show")


def test_what_cannot_be_compared_is_refused(state: StateFolder) -> None:
    assert "cannot be read" in refusal("policy", "shadow", "helios")
    assert "cannot have the name" in refusal("policy", "shadow", "../settings")
    (state.learned_orders / "cut.json").write_text("{")
    assert "it is not JSON" in refusal("policy", "shadow", "cut")
    Settings(learned_order="cut").save(state)
    assert "It is ignored: " in carrel("policy", "show")
    assert "it is not JSON" in json.loads(carrel("policy", "show", "--json"))["problem"]
    assert "or give --off" in refusal("policy", "shadow")
    assert "or give --off" in refusal("policy", "shadow", "philly", "--off")
