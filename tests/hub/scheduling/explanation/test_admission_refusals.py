from __future__ import annotations

import math
from dataclasses import replace

import pytest

from carrel.hub.scheduling.explanation.admission_rules import Refusal, Rule, admit
from carrel.hub.scheduling.model.snapshot import Budget, Device, Group, Health, Period

from ..values import group, node

EIGHT = node("a", 8)
COURSE = (group("cs101", maximum=4, per_user=2, seconds=8 * 3600),)
UNDER_DEPARTMENT = (
    group("cs", maximum=3, per_user=1, seconds=3600),
    group("cs101", maximum=4, per_user=2, parent="cs"),
)
ON_A_BUDGET = tuple(
    replace(each, budget=Budget(device_seconds=hours * 3600, period=period))
    for each, hours, period in (
        (group("cs", maximum=100), 20, Period.WEEK),
        (group("cs101", maximum=4, parent="cs"), 300, Period.TERM),
    )
)
NO_BUDGET = (replace(group(), budget=Budget(device_seconds=0, period=Period.WEEK)),)
MEMBERS_ONLY = (group("cs101", maximum=0, per_user=0),)


def refused(
    *,
    devices: float = 0,
    seconds: float = 60,
    name: str = "cs101",
    groups: tuple[Group, ...] = COURSE,
    pool: tuple[Device, ...] = EIGHT,
    model: str | None = None,
) -> Refusal | None:
    return admit(
        groups=groups, pool=pool, group=name, devices=devices, seconds=seconds, model=model
    )


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"devices": 2, "seconds": 8 * 3600}, id="exactly the limits"),
        pytest.param({"devices": 0, "seconds": 0.5}, id="no device and half a second"),
        pytest.param({"devices": 0, "groups": MEMBERS_ONLY}, id="CPU in a group without devices"),
        pytest.param({"devices": 0, "pool": ()}, id="CPU in an empty pool"),
        pytest.param(
            {"devices": 2, "pool": node("a", 2, health=Health.SICK)},
            id="devices that are all broken now, for they may be repaired",
        ),
        pytest.param({"devices": 1, "model": "H200"}, id="a model that the pool has"),
        pytest.param(
            {"devices": 4, "seconds": 5 * 3600, "groups": ON_A_BUDGET}, id="the whole budget"
        ),
        pytest.param({"seconds": 8 * 3600, "groups": NO_BUDGET}, id="CPU without a budget"),
    ],
)
def test_accepted(asked: dict[str, object]) -> None:
    assert refused(**asked) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            {"devices": 99, "groups": (group("cs101", maximum=4),)},
            Refusal(
                rule=Rule.GROUP_MAXIMUM,
                group="cs101",
                message="cs101 may hold at most 4 devices at one time; you asked for 99.",
                accepted="Ask for 0 to 4.",
            ),
            id="more than the group's maximum",
        ),
        pytest.param(
            {"devices": 10**5000},
            Refusal(
                rule=Rule.GROUP_MAXIMUM,
                group="cs101",
                message="cs101 may hold at most 4 devices at one time; "
                "you asked for more than a billion.",
                accepted="Ask for 0 to 2.",
            ),
            id="a number too long to print, and what is accepted passes the other limits too",
        ),
        pytest.param(
            {"devices": 4, "groups": UNDER_DEPARTMENT},
            Refusal(
                rule=Rule.GROUP_MAXIMUM,
                group="cs",
                message="cs may hold at most 3 devices at one time; you asked for 4.",
                accepted="Ask for 0 to 1.",
            ),
            id="more than the maximum of a group above",
        ),
        pytest.param(
            {"devices": 3},
            Refusal(
                rule=Rule.USER_MAXIMUM,
                group="cs101",
                message="One person may hold at most 2 devices in cs101 at one time; "
                "you asked for 3.",
                accepted="Ask for 0 to 2.",
            ),
            id="more than one member's maximum",
        ),
        pytest.param(
            {"devices": 2, "groups": UNDER_DEPARTMENT},
            Refusal(
                rule=Rule.USER_MAXIMUM,
                group="cs",
                message="One person may hold at most 1 device in cs at one time; you asked for 2.",
                accepted="Ask for 0 to 1.",
            ),
            id="more than one person's maximum in a group above",
        ),
        pytest.param(
            {"devices": 1, "groups": MEMBERS_ONLY},
            Refusal(
                rule=Rule.GROUP_MAXIMUM,
                group="cs101",
                message="cs101 may hold at most 0 devices at one time; you asked for 1.",
                accepted="Ask for 0 (CPU only).",
            ),
            id="a device in a group without devices",
        ),
        pytest.param(
            {"devices": 2, "pool": (*node("a", 1), *node("b", 1))},
            Refusal(
                rule=Rule.NODE_MAXIMUM,
                message="No node has more than 1 device; you asked for 2.",
                accepted="Ask for 0 to 1.",
            ),
            id="more than one node has",
        ),
        pytest.param(
            {"devices": 1, "pool": ()},
            Refusal(
                rule=Rule.NODE_MAXIMUM,
                message="The pool has no devices; you asked for 1.",
                accepted="Ask for 0 (CPU only).",
            ),
            id="a device of an empty pool",
        ),
        pytest.param(
            {"devices": 1, "model": "B300"},
            Refusal(
                rule=Rule.UNKNOWN_MODEL,
                message="The pool has no device of the model B300.",
                accepted="Models: H200.",
            ),
            id="a model that the pool lacks",
        ),
        pytest.param(
            {"devices": 2, "model": "A100", "pool": (*EIGHT, *node("b", 1, model="A100"))},
            Refusal(
                rule=Rule.NODE_MAXIMUM,
                message="No node has more than 1 device of the model A100; you asked for 2.",
                accepted="Ask for 0 to 1.",
            ),
            id="more of a model than one node has",
        ),
        pytest.param(
            {"devices": -1},
            Refusal(
                rule=Rule.DEVICES,
                message="The number of devices must be a whole number, 0 or more; "
                "you asked for -1.",
                accepted="Ask for 0 to 2.",
            ),
            id="fewer than no devices",
        ),
        pytest.param(
            {"devices": 1.5},
            Refusal(
                rule=Rule.DEVICES,
                message="The number of devices must be a whole number, 0 or more; "
                "you asked for 1.5.",
                accepted="Ask for 0 to 2.",
            ),
            id="one and a half devices",
        ),
        pytest.param(
            {"devices": True},
            Refusal(
                rule=Rule.DEVICES,
                message="The number of devices must be a whole number, 0 or more; "
                "you asked for True.",
                accepted="Ask for 0 to 2.",
            ),
            id="true is not a number of devices",
        ),
        pytest.param(
            {"seconds": 0},
            Refusal(
                rule=Rule.SECONDS,
                message="The time limit must be more than 0; you asked for 0 seconds.",
                accepted="Ask for at most 8 hours.",
            ),
            id="no time",
        ),
        pytest.param(
            {"seconds": -90},
            Refusal(
                rule=Rule.SECONDS,
                message="The time limit must be more than 0; "
                "you asked for minus 1 minute 30 seconds.",
                accepted="Ask for at most 8 hours.",
            ),
            id="negative time",
        ),
        pytest.param(
            {"seconds": math.nan},
            Refusal(
                rule=Rule.SECONDS,
                message="The time limit must be more than 0; you asked for no number.",
                accepted="Ask for at most 8 hours.",
            ),
            id="a time that is no number",
        ),
        pytest.param(
            {"seconds": math.inf},
            Refusal(
                rule=Rule.SECONDS_MAXIMUM,
                group="cs101",
                message="cs101 allows at most 8 hours at a time; you asked for more than 30 years.",
                accepted="Ask for at most 8 hours.",
            ),
            id="time without end",
        ),
        pytest.param(
            {"seconds": 5400, "groups": UNDER_DEPARTMENT},
            Refusal(
                rule=Rule.SECONDS_MAXIMUM,
                group="cs",
                message="cs allows at most 1 hour at a time; you asked for 1 hour 30 minutes.",
                accepted="Ask for at most 1 hour.",
            ),
            id="longer than a group above allows",
        ),
        pytest.param(
            {"devices": 3, "seconds": 8 * 3600, "groups": ON_A_BUDGET},
            Refusal(
                rule=Rule.BUDGET,
                group="cs",
                message="cs has a budget of 20.0 device-hours in a week; "
                "you asked for 24.0 device-hours (3 devices for 8 hours).",
                accepted="Ask for at most 6 hours 40 minutes, or for at most 2 devices.",
            ),
            id="more than the whole budget of a group above",
        ),
        pytest.param(
            {"devices": 5, "seconds": 8 * 3600, "groups": ON_A_BUDGET},
            Refusal(
                rule=Rule.GROUP_MAXIMUM,
                group="cs101",
                message="cs101 may hold at most 4 devices at one time; you asked for 5.",
                accepted="Ask for 0 to 2.",
            ),
            id="what is accepted of devices passes the budget as well",
        ),
        pytest.param(
            {"devices": 4, "seconds": 9 * 3600, "groups": ON_A_BUDGET},
            Refusal(
                rule=Rule.SECONDS_MAXIMUM,
                group="cs101",
                message="cs101 allows at most 8 hours at a time; you asked for 9 hours.",
                accepted="Ask for at most 5 hours.",
            ),
            id="what is accepted of time passes the budget as well",
        ),
        pytest.param(
            {"devices": 1, "groups": NO_BUDGET},
            Refusal(
                rule=Rule.BUDGET,
                group="cs101",
                message="cs101 has a budget of 0.0 device-hours in a week; "
                "you asked for 0.02 device-hours (1 device for 1 minute).",
                accepted="Ask for 0 (CPU only).",
            ),
            id="a budget of nothing",
        ),
        pytest.param(
            {"name": "cs999"},
            Refusal(
                rule=Rule.UNKNOWN_GROUP,
                group="cs999",
                message="There is no group cs999.",
                accepted="Groups: cs101.",
            ),
            id="a group that does not exist",
        ),
        pytest.param(
            {"groups": ()},
            Refusal(
                rule=Rule.UNKNOWN_GROUP,
                group="cs101",
                message="There is no group cs101.",
                accepted="There are no groups yet.",
            ),
            id="an empty quota store denies",
        ),
        pytest.param(
            {"groups": (group("cs101", parent="cs"), group("math"))},
            Refusal(
                rule=Rule.UNKNOWN_GROUP,
                group="cs101",
                message="A group above cs101 is missing, so cs101 may not use anything.",
                accepted="Groups: math.",
            ),
            id="a group whose parent is missing denies",
        ),
        pytest.param(
            {"groups": (group("cs101", parent="cs"), group("cs", parent="cs101"))},
            Refusal(
                rule=Rule.UNKNOWN_GROUP,
                group="cs101",
                message="A group above cs101 is missing, so cs101 may not use anything.",
                accepted="There are no groups yet.",
            ),
            id="groups in a circle deny",
        ),
    ],
)
def test_refused(asked: dict[str, object], expected: Refusal) -> None:
    assert refused(**asked) == expected  # type: ignore[arg-type]
