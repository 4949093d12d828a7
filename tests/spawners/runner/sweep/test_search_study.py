"""What a search chooses and stops, without notebooks."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.attempts.trials import TrialRecord, TrialState
from carrel.hub.sweeps.space import Pruner, SearchSpace
from carrel.hub.sweeps.space_syntax import space_from_json
from carrel.spawners.runner.sweep.search import Search


def space_of(
    trials: int, *, pruner: str = "none", sampler: str = "tpe", **given: Any
) -> SearchSpace:
    parameters = given or {"x": {"uniform": [-10.0, 10.0]}, "y": {"log": [1e-3, 1e3]}}
    found = space_from_json(
        {"search": parameters, "trials": trials, "pruner": pruner, "sampler": sampler}
    )
    assert isinstance(found, SearchSpace)
    return found


def loss(values: Mapping[str, Any]) -> float:
    return float((values["x"] - 3) ** 2 + abs(values["y"] - 1))


def run(search: Search, numbers: range) -> list[TrialRecord]:
    """Run trials one after the other; each reports its loss once."""
    records = []
    for number in numbers:
        values = search.begin(number)
        search.end(number, TrialState.SUCCEEDED, loss(values))
        records.append(
            TrialRecord(
                number=number,
                state=TrialState.SUCCEEDED,
                at=float(number),
                reported={"loss": loss(values)},
                values=values,
            )
        )
    return records


def test_values_are_better_than_random_ones() -> None:
    medians = {}
    for sampler in ("tpe", "random"):
        found = run(Search(space_of(40, sampler=sampler), maximize=False), range(1, 41))
        medians[sampler] = statistics.median(one.reported["loss"] for one in found[20:])
    assert medians["tpe"] < medians["random"] / 2


def test_the_largest_objective_is_searched_if_it_is_the_best() -> None:
    search = Search(space_of(40, x={"uniform": [0.0, 1.0]}), maximize=True)
    chosen = []
    for number in range(1, 41):
        values = search.begin(number)
        chosen.append(float(values["x"]))  # type: ignore[arg-type]  # a number
        search.end(number, TrialState.SUCCEEDED, chosen[-1])
    assert statistics.median(chosen[20:]) > 0.8


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_study_that_is_built_again_goes_on_as_the_first_one(sampler: str) -> None:
    space = space_of(30, sampler=sampler)
    whole = run(Search(space, maximize=False), range(1, 31))
    again = Search(space, maximize=False)
    again.replay(reversed(whole[:17]), "loss", lambda _: ())
    assert run(again, range(18, 31)) == whole[17:]


def test_a_trial_that_begins_again_has_its_values_again() -> None:
    space = space_of(9, x=[1, True, 1.5, None, "1"], y=[0.5])
    for value in (1, True, 1.5, None, "1"):
        begun = Search(space, maximize=False).begin(7, {"x": value, "y": 0.5})
        assert (begun, type(begun["x"])) == ({"x": value, "y": 0.5}, type(value))


@pytest.mark.parametrize("values", [{}, {"x": 11.0, "y": 1.0}, {"x": "a", "y": 1.0}, {"x": 1.0}])
def test_recorded_values_that_are_none_of_the_space_are_chosen_anew(values: dict[str, Any]) -> None:
    space = space_of(9)
    begun = Search(space, maximize=False).begin(1, values)
    assert begun == Search(space, maximize=False).begin(1)


@pytest.mark.parametrize("pruner", [each for each in Pruner if each is not Pruner.NONE])
def test_trials_that_are_worse_than_others_are_stopped(pruner: Pruner) -> None:
    """The first trials are good ones; then each reports a loss that is worse than all before."""
    search = Search(space_of(60, pruner=pruner), maximize=False)
    pruned: dict[int, int] = {}
    for number in range(1, 61):
        search.begin(number)
        for step in range(27):
            if search.report(number, [(step, float(number) if number > 5 else 0.0)]):
                pruned[number] = step
                break
        state = TrialState.PRUNED if number in pruned else TrialState.SUCCEEDED
        search.end(number, state, float(number))
    assert not any(number <= 5 for number in pruned)
    assert len(pruned) > 25


def test_a_study_that_is_built_again_stops_trials_as_the_first_one() -> None:
    space = space_of(10, pruner="asha")
    first = Search(space, maximize=False)
    points = {number: [(step, 1.0) for step in range(9)] for number in (1, 2, 3)}
    records = []
    for number, each in points.items():
        values = first.begin(number)
        first.report(number, each)
        first.end(number, TrialState.SUCCEEDED, 1.0)
        about = TrialRecord(number=number, state=TrialState.SUCCEEDED, at=1.0, values=values)
        records.append(replace(about, reported={"loss": 1.0}))
    again = Search(space, maximize=False)
    again.replay(records, "loss", points.__getitem__)
    for search in (first, again):
        search.begin(4)
        assert not search.report(4, [(0, 2.0)])
        assert search.report(4, [(1, 2.0)])


def test_many_values_of_a_trial_take_no_time() -> None:
    search = Search(space_of(3, pruner="asha"), maximize=False)
    for number in (1, 2):
        search.begin(number)
        search.report(number, [(step, 1.0) for step in range(100_000)])
        search.end(number, TrialState.SUCCEEDED, 1.0)
    search.begin(3)
    assert search.report(3, [(step, 2.0) for step in range(100_000)])


def test_optuna_prints_and_warns_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = Search(space_of(3, pruner="hyperband"), maximize=False)
        search.begin(1)
        search.report(1, [(0, float("nan")), (0, 1.0), (1, float("inf"))])
        search.end(1, TrialState.SUCCEEDED, float("nan"))
        search.begin(2)
        search.end(2, TrialState.PRUNED, None)
    assert capfd.readouterr() == ("", "")
