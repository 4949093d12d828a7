"""Learned orders: what their files may hold, and what they change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.learned_order import (
    FEATURES,
    LARGEST_WEIGHT,
    WEIGHTS,
    LearnedOrder,
    features,
)
from carrel.hub.scheduling.model.snapshot import PendingRequest, PriorityClass, Snapshot
from carrel.hub.scheduling.queue.cycle_state import CycleState
from carrel.hub.scheduling.queue.order import in_order
from carrel.hub.scheduling.queue.queues import AGEING, entry

from .. import rich
from ..values import NOW, group, node, pending

ZERO = WEIGHTS * (0.0,)
PREFERS_WIDE = LearnedOrder(name="wide", weights=(0.0, 0.0, 10.0, *ZERO[3:]))


def order(learned: LearnedOrder | None, *queue: PendingRequest) -> list[str]:
    snapshot = Snapshot(
        devices=node("a", 8), groups=(group(),), pending=queue, learned_order=learned
    )
    return [request.id for request in in_order(snapshot, CycleState(snapshot, NOW))]


def test_a_request_of_the_same_owner_goes_first_if_its_discount_is_large_enough() -> None:
    queue = (pending("wide", 4, owner="ada"), pending("narrow", 1, owner="ada"))
    assert order(None, *queue) == ["narrow", "wide"]
    assert order(PREFERS_WIDE, *queue) == ["wide", "narrow"]


def test_classes_and_owners_are_not_reordered() -> None:
    queue = (
        pending("wide", 4, owner="ada", age=1),
        pending("narrow", 1, owner="bob", age=9),
        pending("urgent", 1, owner="ada", priority=PriorityClass.URGENT),
    )
    assert order(None, *queue) == order(PREFERS_WIDE, *queue) == ["urgent", "narrow", "wide"]


@given(rich.snapshots())
def test_weights_of_zero_change_nothing(snapshot: Snapshot) -> None:
    without = replace(snapshot, learned_order=None)
    zero = replace(snapshot, learned_order=LearnedOrder(name="zero", weights=ZERO))
    assert decide(zero, NOW) == decide(without, NOW)


@given(rich.requests("r"), rich.learned_orders)
def test_a_key_lies_between_age_alone_and_that_of_the_size(
    request: PendingRequest, learned: LearnedOrder
) -> None:
    (key, *_), (_, weight, needs, _) = entry(request, learned)
    (whole, *_), (_, *same, _) = entry(request, None)
    assert AGEING * request.submitted_at <= key <= whole
    assert [weight, needs] == same, "charges are not discounted"


@given(rich.requests("r"), rich.learned_orders)
def test_features_are_small_and_discounts_are_limited(
    request: PendingRequest, learned: LearnedOrder
) -> None:
    found = features(request.seconds, request.devices, request.submitted_at, gang=True)
    assert all(-2 <= each <= 2 for each in found)
    assert 1 <= learned.discount(found) <= 256
    assert 1 <= learned.discount(features(1e300, 1e300, 1e12, gang=False)) <= 256


def test_a_file_is_read_as_it_was_written() -> None:
    content = PREFERS_WIDE.as_json(command="train")
    assert LearnedOrder.from_json("wide", content) == PREFERS_WIDE


def _with(**changes: Any) -> Callable[[], str]:
    made = {"format": 1, "features": FEATURES, "weights": ZERO} | changes
    return lambda: json.dumps(made)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(lambda: "", "not JSON", id="empty"),
        pytest.param(lambda: PREFERS_WIDE.as_json()[:-9], "not JSON", id="cut off"),
        pytest.param(lambda: 50_000 * "[", "not JSON", id="deeply nested"),
        pytest.param(lambda: 200_000 * " ", "too long", id="too long"),
        pytest.param(lambda: "[]", "another format", id="a list"),
        pytest.param(_with(format=2), "another format", id="of a later version"),
        pytest.param(_with(features=["age"]), "other features", id="of other features"),
        pytest.param(_with(weights=[1.0]), "1 weights", id="too few weights"),
        pytest.param(_with(weights=[*ZERO[1:], float("nan")]), "not finite", id="NaN"),
        pytest.param(_with(weights=[*ZERO[1:], float("inf")]), "not finite", id="infinity"),
        pytest.param(_with(weights=[*ZERO[1:], 1001.0]), "out of range", id="a large weight"),
        pytest.param(_with(weights=[*ZERO[1:], 10**400]), "not numbers", id="a huge integer"),
        pytest.param(_with(weights=[*ZERO[1:], True]), "not numbers", id="a truth value"),
        pytest.param(_with(weights=None), "not numbers", id="no weights"),
    ],
)
def test_a_damaged_file_is_refused(content: Callable[[], str], why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        LearnedOrder.from_json("damaged", content())
    assert why in refused.value.message
    assert f"{LARGEST_WEIGHT:,.0f}" in refused.value.accepted
