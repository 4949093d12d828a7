"""Admission rules for device models and budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.explanation.admission_rules import AdmissionRules, Refusal, Rule
from carrel.hub.scheduling.model.snapshot import Budget, Kind, Period, Share

from ..values import group, node

POOL = (*node("a", 4, model="A100"), *node("b", 4, model="H200"))
LAB = replace(group("lab", maximum=8, per_user=8), models=frozenset({"A100", "B300"}))


@pytest.mark.parametrize(
    ("devices", "model", "expected"),
    [
        pytest.param(1, "A100", None, id="one that its group may use"),
        pytest.param(
            1,
            "H200",
            Refusal(
                rule=Rule.FORBIDDEN_MODEL,
                group="lab",
                message="lab may not use devices of the model H200.",
                accepted="Any model, or one of: A100.",
            ),
            id="one that its group may not use",
        ),
        pytest.param(
            1,
            "B300",
            Refusal(
                rule=Rule.UNKNOWN_MODEL,
                message="The pool has no device of the model B300.",
                accepted="Any model, or one of: A100.",
            ),
            id="one that the pool lacks",
        ),
        pytest.param(
            0,
            "A100",
            Refusal(
                rule=Rule.NEEDLESS_MODEL,
                message="A model needs at least one device.",
                accepted="Leave the model out, or ask for at least one device.",
            ),
            id="one without a device",
        ),
    ],
)
def test_a_model(devices: int, model: str, expected: Refusal | None) -> None:
    found = AdmissionRules([LAB], POOL).refusal(
        group="lab", devices=devices, seconds=60, kind=Kind.JOB, preemptible=True, model=model
    )
    assert found == expected


def test_a_share_uses_its_part_of_a_budget() -> None:
    budget = Budget(device_seconds=1800, period=Period.WEEK)
    gate = AdmissionRules([replace(group("lab"), budget=budget)], POOL)

    def refused(compute: float) -> Rule | None:
        found = gate.refusal(
            group="lab",
            devices=1,
            seconds=3600,
            kind=Kind.JOB,
            preemptible=True,
            share=Share(compute=compute),
        )
        return None if found is None else found.rule

    assert refused(0.5) is None
    assert refused(0.501) is Rule.BUDGET
