"""Spaces of parameters: their forms, their trials, and the sentences for those that are wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput
from carrel.hub.sweeps.space import (
    GridSpace,
    ListSpace,
    Pruner,
    RandomSpace,
    Sampler,
    SearchSpace,
    ValueRange,
)
from carrel.hub.sweeps.space_syntax import space_from_json, space_from_options
from carrel.hub.sweeps.trials import MOST_TRIALS, Trial, value_key

from .notebooks import notebook


def values(trials: tuple[Trial, ...]) -> list[dict[str, object]]:
    assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))
    return [dict(trial.values) for trial in trials]


def test_a_grid_is_numbered_with_the_last_parameter_changing_fastest() -> None:
    space = space_from_options(grid=["lr=0.1,1e-2", "depth=2,4"])
    assert values(space.trials()) == [
        {"lr": 0.1, "depth": 2},
        {"lr": 0.1, "depth": 4},
        {"lr": 0.01, "depth": 2},
        {"lr": 0.01, "depth": 4},
    ]


def test_values_have_the_types_of_parameters_of_a_job() -> None:
    space = space_from_options(grid=['x=1,1.0,true,null,007,adam,"7","a,b"'])
    assert [each["x"] for each in values(space.trials())] == [
        1, 1.0, True, None, "007", "adam", "7", "a,b",
    ]  # fmt: skip


def test_a_list_is_its_trials() -> None:
    space = space_from_options(listed='[{"lr": 0.1}, {"lr": 0.2, "depth": 3}, {}]')
    assert values(space.trials()) == [{"lr": 0.1}, {"lr": 0.2, "depth": 3}, {}]


def test_random_trials_depend_on_the_seed_their_number_and_their_name_alone() -> None:
    def drawn(*sampled: str, trials: int, seed: int) -> list[dict[str, object]]:
        return values(space_from_options(sampled=sampled, trials=trials, seed=seed).trials())

    few = drawn("lr=log:1e-4..1e-1", trials=5, seed=7)
    more = drawn("lr=log:1e-4..1e-1", "depth=2..8", trials=20, seed=7)
    assert few == [{"lr": each["lr"]} for each in more[:5]]
    assert few != drawn("lr=log:1e-4..1e-1", trials=5, seed=8)


def test_random_samples_are_in_their_ranges_and_spread() -> None:
    space = space_from_options(
        sampled=[
            "lr=log:1e-4..1e-1",
            "depth=2..4",
            "drop=0.0..0.5",
            "name=adam,sgd",
            "n=log:1..64",
        ],
        trials=400,
    )
    drawn = values(space.trials())
    assert {each["depth"] for each in drawn} == {2, 3, 4}
    assert {each["name"] for each in drawn} == {"adam", "sgd"}
    assert all(type(each["n"]) is int and 1 <= each["n"] <= 64 for each in drawn)
    numbers = [each["lr"] for each in drawn if isinstance(each["lr"], float)]
    assert len(numbers) == 400
    assert all(1e-4 <= each <= 1e-1 for each in numbers)
    # A third of them in each decade.
    assert 90 < sum(each < 1e-3 for each in numbers) < 180


def test_whole_bounds_are_whole_samples_unless_the_parameter_is_a_number() -> None:
    whole = notebook(parameters="momentum = 1")
    number = notebook(parameters="momentum = 0.9")
    space = space_from_options(sampled=["momentum=0..1"], trials=20)
    assert {each["momentum"] for each in values(space.check(whole).trials())} == {0, 1}
    assert all(type(each["momentum"]) is float for each in values(space.check(number).trials()))


def test_a_million_trials_are_refused_without_making_them() -> None:
    hundred = ",".join(map(str, range(100)))
    with pytest.raises(InvalidInput) as refused:
        space_from_options(grid=[f"{name}={hundred}" for name in "abcd"])
    assert str(refused.value) == (
        "This sweep would have 100,000,000 trials. A sweep has from 1 to 10,000 trials."
    )
    with pytest.raises(InvalidInput, match="10,000,000 trials"):
        space_from_options(sampled=["lr=0..1"], trials=10**7)
    assert len(RandomSpace(parameters={"a": (1, 2)}, count=MOST_TRIALS).trials()) == MOST_TRIALS


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "The parameters of the sweep are missing."),
    "two spaces": ({"grid": ["a=1"], "listed": "[{}]"}, "has more than one space"),
    "an empty grid": ({"grid": ["lr="]}, "lr has no values. Such as lr=0.1,0.01."),
    "an empty value": ({"grid": ["lr=1,,2"]}, "lr has an empty value."),
    "no name": ({"grid": ["=1"]}, "'=1' names no parameter."),
    "a parameter twice": ({"grid": ["lr=1", "lr=2"]}, "The parameter lr is given twice."),
    "a value twice": ({"grid": ["lr=1,2,1"]}, "lr has the value 1 twice."),
    "an open quotation": ({"grid": ['a="x,y']}, "A quotation mark is missing in the values of a"),
    "a huge number": ({"grid": ["a=1e400"]}, "The number '1e400' is too large."),
    "a huge whole number": ({"grid": [f"a={'9' * 400}"]}, "is too large."),
    "no JSON": ({"listed": "lr=1"}, "The list of trials is not JSON"),
    "no list": ({"listed": '{"lr": 1}'}, "The list of trials is not a list of objects."),
    "an empty list": ({"listed": "[]"}, "The list of trials is empty."),
    "a list as a value": (
        {"listed": '[{"lr": [1]}]'},
        "lr has the value [1], which",
    ),
    "NaN": ({"listed": '[{"lr": NaN}]'}, "lr has the value nan, which a sweep cannot have."),
    "no number of trials": ({"sampled": ["lr=0..1"]}, "The number of trials is missing."),
    "no trials": ({"sampled": ["lr=0..1"], "trials": 0}, "A sweep needs at least one trial."),
    "a seed without chance": ({"grid": ["a=1"], "seed": 7}, "Only random parameters and a search"),
    "a pruner without a search": ({"grid": ["a=1"], "pruner": "asha"}, "Only a search has a"),
    "an unknown sampler": (
        {"searched": ["a=0..1"], "trials": 2, "sampler": "grid"},
        "The sampler 'grid' is not known. One of tpe, random.",
    ),
    "a search of too many trials": (
        {"searched": ["a=0..1"], "trials": 1001},
        "This search would have 1,001 trials. A search has from 1 to 1,000 trials",
    ),
    "a search without a number": ({"searched": ["a=0..1"]}, "The number of trials is missing."),
    "an empty range": ({"sampled": ["a=2..2"], "trials": 1}, "The range of a goes from 2 to 2."),
    "a range of texts": ({"sampled": ["a=x..y"], "trials": 1}, "'x..y' is not a range of a."),
    "a range of logarithms of 0": ({"sampled": ["a=log:0..1"], "trials": 1}, "begins at 0."),
    "a logarithm": ({"sampled": ["a=log:1"], "trials": 1}, "'log:1' is not a range of a."),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_space_is_refused_with_a_sentence(case: str) -> None:
    given_options, said = WRONG[case]
    with pytest.raises(InvalidInput) as refused:
        space_from_options(**given_options)
    assert said in str(refused.value)
    assert refused.value.accepted


def test_a_parameter_that_the_notebook_lacks_is_refused_with_those_it_has() -> None:
    for space in (
        space_from_options(grid=["rate=1"]),
        space_from_options(listed='[{"lr": 1}, {"rate": 1}]'),
        space_from_options(sampled=["rate=0..1"], trials=2),
    ):
        with pytest.raises(InvalidInput) as refused:
            space.check(notebook())
        assert str(refused.value) == ("train.ipynb has no parameter rate. It has: lr, depth, name.")
    with pytest.raises(InvalidInput, match="Tag a cell of the notebook 'parameters'"):
        space_from_options(grid=["rate=1"]).check(notebook("x = 1", parameters=None))


@pytest.mark.parametrize(
    ("declared", "fits", "wrong", "accepted"),
    [
        ("x: int = 2", ["4"], ["2.5", "true", "a", "null"], "Give a whole number such as 10."),
        ("x = 2", ["4", "2.5", "null"], ["true", "a"], "Give a number such as 0.05."),
        ("x: float = 2", ["4", "2.5"], ["false", "a", "null"], "Give a number such as 0.05."),
        ("x = True", ["false"], ["0", "yes"], "Give true or false."),
        ("x = 'a'", ["b", '"7"'], ["7", "true"], 'Write text in quotes, such as "'),
        ("x: 'str' = None", ["b"], ["7"], 'Write text in quotes, such as "7".'),
        ("x: int | None = 2", ["4", "null"], ["a"], "Give a number such as 0.05."),
        ("x = None", ["b", "7", "null"], [], ""),
        ("x = [1, 2]", ["7"], [], ""),
    ],
)
def test_a_value_that_contradicts_the_parameter_is_refused(
    declared: str, fits: list[str], wrong: list[str], accepted: str
) -> None:
    made = notebook(parameters=declared)
    for text in fits:
        space_from_options(grid=[f"x={text}"]).check(made)
    for text in wrong:
        with pytest.raises(InvalidInput, match="does not fit x, which is") as refused:
            space_from_options(grid=[f"x={text}"]).check(made)
        assert refused.value.accepted.startswith(accepted)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9), st.text()
)
NAMES = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
CHOICES = st.lists(SCALARS, min_size=1, max_size=4, unique_by=value_key).map(tuple)
RANGES = st.builds(
    lambda low, size, log: ValueRange(low=low, high=low + size, logarithmic=log),
    st.floats(0.1, 10),
    st.floats(0.1, 10),
    st.booleans(),
)
SPACES = st.one_of(
    st.dictionaries(NAMES, CHOICES, min_size=1, max_size=3).map(GridSpace),
    st.lists(st.dictionaries(NAMES, SCALARS), min_size=1).map(lambda each: ListSpace(tuple(each))),
    st.builds(
        lambda parameters, count, seed: RandomSpace(parameters=parameters, count=count, seed=seed),
        st.dictionaries(NAMES, st.one_of(CHOICES, RANGES), min_size=1),
        st.integers(1, 5),
        st.integers(0, 2**53 - 1),
    ),
    st.builds(
        lambda parameters, count, seed, sampler, pruner: SearchSpace(
            parameters=parameters, count=count, seed=seed, sampler=sampler, pruner=pruner
        ),
        st.dictionaries(NAMES, st.one_of(CHOICES, RANGES), min_size=1),
        st.integers(1, 5),
        st.integers(0, 2**53 - 1),
        st.sampled_from(Sampler),
        st.sampled_from(Pruner),
    ),
)


@given(SPACES)
def test_a_space_is_the_same_after_a_way_through_json(
    space: GridSpace | ListSpace | RandomSpace | SearchSpace,
) -> None:
    again = space_from_json(json.loads(json.dumps(space.as_json())))
    assert again == space
    assert again.trials() == space.trials()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "The space is not a JSON object."),
        ({}, "The space is not one space."),
        ({"grid": {"a": [1]}, "list": [{}]}, "The space is not one space."),
        ({"grid": {"a": [1]}, "jobs": 4}, "The space has the field 'jobs'."),
        ({"grid": [1]}, "The field 'grid' is not a JSON object."),
        ({"grid": {"a": 1}}, "The values of a are not a list."),
        ({"grid": {}}, "The grid is empty."),
        ({"random": {"a": {"normal": [0, 1]}}, "trials": 2}, "The distribution of a is not known."),
        ({"random": {"a": {"log": [1]}}, "trials": 2}, "The distribution of a is not known."),
        ({"random": {"a": [1]}}, "The field 'trials' is not a whole number."),
        ({"random": {"a": [1]}, "trials": True}, "The field 'trials' is not a whole number."),
        ({"random": {"a": [1]}, "trials": 10**7}, "This sweep would have 10,000,000 trials."),
        (
            {"random": {"a": [1]}, "trials": 2, "pruner": "asha"},
            "The space has the field 'pruner'.",
        ),
        ({"search": {}, "trials": 2}, "The search space is empty."),
        ({"search": {"a": [1]}, "trials": 2, "pruner": 3}, "The pruner '3' is not known."),
        ({"search": {"a": [1]}, "trials": 2, "sampler": []}, "The sampler '[]' is not known."),
    ],
)
def test_wrong_json_is_refused_with_a_sentence(document: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        space_from_json(document)
    assert refused.value.message == said


def test_a_search_fits_the_notebook_as_random_values_do() -> None:
    space = space_from_options(
        searched=["lr=0..1", "depth=2..8", "name=adam,sgd"], trials=3, pruner="asha", seed=7
    ).check(notebook())
    assert space.as_json() == {
        "search": {
            "lr": {"uniform": [0, 1]},
            "depth": {"uniform": [2, 8]},
            "name": ["adam", "sgd"],
        },
        "trials": 3,
        "seed": 7,
        "sampler": "tpe",
        "pruner": "asha",
    }
    assert isinstance(space, SearchSpace)
    admitted = {"lr": 0.5, "depth": 3, "name": "adam"}
    assert space.admits(admitted)
    for wrong in (
        {"lr": 2},
        {"depth": 2.5},
        {"depth": True},
        {"name": "x"},
        {"name": []},
        {"a": 1},
    ):
        assert not space.admits({**admitted, **wrong})
    assert not space.admits({"lr": 0.5})


def test_all_trials_of_a_search_differ_before_their_values_are_known() -> None:
    space = space_from_options(searched=["a=1,null", "b=0..1"], trials=3)
    assert [trial.values for trial in space.trials()] == [
        {"a": None, "b": "?1"},
        {"a": "?2", "b": "?2"},
        {"a": "?3", "b": "?3"},
    ]
