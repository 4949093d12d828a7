"""Policies by name: built-in ones, and those of other packages."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.simulation.policies import registry
from carrel.hub.simulation.policies.policy import Policy
from carrel.hub.simulation.workload.job_run import Run

from ..kit import job, played, spans


def widest_first(run: Run, now: float) -> tuple[float, ...]:
    return (-run.job.devices,)


PATIENT = Policy(name="elsewhere", order=widest_first, passes=True)


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> tuple[EntryPoint, ...]:
    module = ModuleType("lab_policies")
    vars(module).update(widest_first=widest_first, patient=PATIENT, number=7)
    monkeypatch.setitem(sys.modules, "lab_policies", module)
    return tuple(
        EntryPoint(name=name, value=f"lab_policies:{thing}", group=registry.GROUP)
        for name, thing in (
            ("widest", "widest_first"),
            ("patient", "patient"),
            ("wrong", "number"),
            ("fifo", "widest_first"),
        )
    )


def test_a_function_is_an_order(points: tuple[EntryPoint, ...]) -> None:
    policy = registry.policy("widest", points)
    jobs = (job("a", 0, 10, 2), job("one", 1, 10), job("two", 2, 10, 2))
    assert spans(played(policy, jobs))["two"] == [(10, 20)]


def test_a_policy_has_the_name_of_its_entry_point(points: tuple[EntryPoint, ...]) -> None:
    policy = registry.policy("patient", points)
    assert (policy.name, isinstance(policy, Policy) and policy.passes) == ("patient", True)


def test_no_policy_takes_the_name_of_a_built_in_one(points: tuple[EntryPoint, ...]) -> None:
    assert registry.policy("fifo", points) == registry.policy("fifo")


def test_built_in_policies_are_listed_first(points: tuple[EntryPoint, ...]) -> None:
    assert registry.names(points) == (
        *("fifo", "greedy", "sjf", "srtf", "las", "qssf", "carrel"),
        *("patient", "widest", "wrong"),
    )


def test_unknown_and_invalid_policies_are_refused(
    points: tuple[EntryPoint, ...],
) -> None:
    with pytest.raises(InvalidInput, match="no policy 'lottery'") as refused:
        registry.policy("lottery", points)
    assert "patient" in refused.value.accepted
    with pytest.raises(InvalidInput, match="is int"):
        registry.policy("wrong", points)
