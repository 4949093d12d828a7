"""The part of the job form for sweeps: what it submits, and what it refuses."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.schemas.sweeps import SweepIn
from carrel.hub.web.forms.quote import quote_request
from carrel.hub.web.forms.sweep import SWEEP_FIELDS, sweep_body, sweep_texts

EMPTY = dict.fromkeys(SWEEP_FIELDS, "")


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("lr=0.1,0.01 depth=2,4", {"grid": {"lr": [0.1, 0.01], "depth": [2, 4]}}),
        ("'name=a,\"b c\"'", {"grid": {"name": ["a", "b c"]}}),
        ('{"list": [{"lr": 0.1}]}', {"list": [{"lr": 0.1}]}),
        (
            '{"random": {"lr": {"log": [0.001, 0.1]}}, "trials": 3, "seed": 7}',
            {"random": {"lr": {"log": [0.001, 0.1]}}, "trials": 3, "seed": 7},
        ),
    ],
)
def test_the_values_to_try_are_a_grid_or_json_and_are_shown_again(
    text: str, space: dict[str, object]
) -> None:
    made = sweep_body(EMPTY | {"sweep": text, "parallel": "2", "trial_time": "10m"})
    assert made is not None
    assert (made.space, made.parallel, made.trial_seconds, made.share) == (space, 2, 600, True)
    again = sweep_body(EMPTY | sweep_texts(made, "10m"))
    assert again == made


def test_a_number_of_trials_makes_a_search_of_the_values_and_ranges() -> None:
    texts = {"sweep": "lr=log:0.001..0.1 depth=2,4", "search_trials": "50", "prune": "asha"}
    made = sweep_body(EMPTY | texts | {"objective": "loss"})
    assert made is not None
    assert made.space == {
        "search": {"lr": {"log": [0.001, 0.1]}, "depth": [2, 4]},
        "trials": 50,
        "seed": 0,
        "sampler": "tpe",
        "pruner": "asha",
    }
    assert sweep_body(EMPTY | sweep_texts(made, "")) == made


def test_a_form_without_values_is_no_sweep() -> None:
    assert sweep_body(EMPTY | {"parallel": "2"}) is None
    assert sweep_texts(None, "") == {}


def test_the_objective_and_its_goal_are_kept() -> None:
    texts = EMPTY | {"sweep": "x=1,2", "objective": "acc", "goal": "largest", "share": "no"}
    assert sweep_body(texts) == SweepIn(
        space={"grid": {"x": [1, 2]}}, objective="acc", maximize=True, share=False
    )


@pytest.mark.parametrize(
    ("texts", "field", "message"),
    [
        ({"sweep": "lr"}, "sweep", "'lr' names no parameter."),
        ({"sweep": "lr='0.1"}, "sweep", "The values to try are not quoted correctly"),
        ({"sweep": '{"grid": 1}'}, "sweep", "The field 'grid' is not a JSON object."),
        ({"sweep": "x=1", "parallel": "many"}, "parallel", "'many' is not a number of trials"),
        ({"sweep": "x=1", "parallel": "0"}, "parallel", "'0' is not a number of trials"),
        (
            {"sweep": "x=1", "search_trials": "-3"},
            "search_trials",
            "'-3' is not a number",
        ),
        ({"sweep": "{}", "search_trials": "3"}, "search_trials", "'3' is not a number"),
        ({"sweep": "x=1", "prune": "asha"}, "prune", "Only trials of a search are stopped early."),
        ({"sweep": "x=1", "trial_time": "soon"}, "trial_time", "soon"),
    ],
)
def test_what_is_no_sweep_is_refused_beside_its_field(
    texts: dict[str, str], field: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        sweep_body(EMPTY | texts)
    assert refused.value.field == field
    assert message in refused.value.message


def test_the_quote_counts_the_devices_of_all_trials_that_run_at_a_time() -> None:
    form = {"for": "job", "devices": "1", "time": "1", "time_unit": "h", "group": "cs101"}
    sweep = {"sweep": "x=1,2", "parallel": "2"}
    assert quote_request(form | sweep).devices == 2
    assert quote_request(form | {"parallel": "2"}).devices == 1
    assert quote_request(form | sweep | {"kind": "command"}).devices == 1
    assert quote_request(form | sweep | {"parallel": "many"}).devices == 1


def test_trials_of_a_form_are_trained_as_one() -> None:
    made = sweep_body(EMPTY | {"sweep": "x=1,2", "share": "together"})
    assert made == SweepIn(space={"grid": {"x": [1, 2]}}, together=True)
    assert sweep_texts(made, "")["share"] == "together"
