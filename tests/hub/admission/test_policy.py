"""Admission accepts only requests that could start in an empty pool."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given

from carrel.hub.admission.policy import check_resources
from carrel.hub.errors import OverMaximum, Refused
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import Health, Kind, PendingRequest, Snapshot

from ..scheduling import rich
from ..scheduling.values import NOW, group, node


@given(rich.snapshots())
def test_an_admitted_request_starts_in_an_empty_pool(asked: Snapshot) -> None:
    devices = tuple(replace(each, health=Health.OK) for each in asked.devices)
    for request in asked.pending:
        if request.gang or request.share or request.nodes is not None or not request.devices:
            continue
        if (request.not_before or NOW) > NOW:
            continue  # it waits for its back-off
        alone = Snapshot(devices=devices, groups=asked.groups, pending=(request,))
        starts = bool(decide(alone, NOW).starts)
        assert starts == is_admitted(request, alone)


def is_admitted(request: PendingRequest, state: Snapshot) -> bool:
    try:
        check_resources(
            state.groups,
            state.devices,
            group=request.group,
            devices=request.devices,
            seconds=1,
            model=request.model,
            kind=request.kind,
            preemptible=request.preemptible,
        )
    except Refused:
        return False
    return True


def test_more_devices_than_one_node_has_of_the_allowed_models_are_refused() -> None:
    groups = (replace(group("cs101"), models=frozenset({"A100"})),)
    devices = (*node("a", 2, model="A100"), *node("b", 8, model="H200"))

    with pytest.raises(OverMaximum) as refused:
        check_resources(groups, devices, group="cs101", devices=3, seconds=60)

    assert str(refused.value) == (
        "No node has more than 2 devices that cs101 may use; you asked for 3. Ask for 0 to 2."
    )


def test_a_session_with_devices_is_refused_if_members_may_have_none() -> None:
    groups = (replace(group("cs"), max_sessions=0), group("cs101", parent="cs"))
    check = partial(check_resources, groups, node("a", 2), group="cs101", devices=1, seconds=60)

    with pytest.raises(OverMaximum) as refused:
        check(kind=Kind.SESSION)

    assert str(refused.value) == (
        "cs allows no sessions with devices; you asked for 1. Ask for 0 (CPU only)."
    )
    check(kind=Kind.JOB)


def test_a_request_above_what_its_parent_group_may_hold_is_refused() -> None:
    groups = (
        replace(group("cs"), borrowing=0),
        replace(group("cs101", parent="cs"), guaranteed=2),
    )
    check = partial(check_resources, groups, node("a", 4), group="cs101", seconds=60)

    check(devices=2)

    with pytest.raises(OverMaximum) as refused:
        check(devices=3)
    assert str(refused.value) == (
        "cs may hold at most 2 devices at one time: 2 guaranteed, and 0 borrowed; you asked for 3. "
        "Ask for 0 to 2."
    )
