"""``carrel.stages``: common steps run once, and the results are those of trials that run alone."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import carrel
from carrel.extensions.stages.study import StageStudy

from ...source_tree import ROOT

STEPS = 12


class Weights:
    """A model with a state dict, as in PyTorch: what a checkpoint leaves out is kept."""

    def __init__(self, number: int) -> None:
        self.values = np.random.default_rng(number).normal(size=4)

    def state_dict(self) -> dict[str, Any]:
        return {"values": self.values}

    def load_state_dict(self, found: Mapping[str, Any]) -> None:
        self.values[:] = found["values"]


class Momentum:
    """An optimizer that holds on to its model."""

    def __init__(self, model: Weights) -> None:
        self.model, self.speed = model, np.zeros(4)

    def state_dict(self) -> dict[str, Any]:
        return {"speed": self.speed}

    def load_state_dict(self, found: Mapping[str, Any]) -> None:
        self.speed = found["speed"]

    def step(self, lr: float) -> None:
        noise = np.random.normal(size=4) * random.random()  # noqa: S311  # global states
        self.speed = 0.9 * self.speed - lr * (self.model.values + noise)
        self.model.values += self.speed


def start() -> dict[str, Any]:
    model = Weights(1)
    return {"model": model, "parts": (Momentum(model), [0.0])}


def step(state: Any, values: Mapping[str, Any], number: int) -> float:
    optimizer, total = state["parts"]
    assert optimizer.model is state["model"]
    optimizer.step(values["lr"])
    total[0] += float(np.abs(state["model"].values).sum()) + number / 1000
    return float(total[0])


def run(schedules: Sequence[Mapping[str, Any]], **options: Any) -> StageStudy:
    return carrel.stages(start, step, schedules, steps=STEPS, objective="loss", **options)


def decays(*changes: tuple[int, float]) -> dict[str, Any]:
    return {"lr": [(0, 0.1), *changes]}


@pytest.fixture(autouse=True)
def _outside_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CARREL_REQUEST", "CARREL_RESUMES", "CARREL_REPORTS", "CARREL_PROGRESS"):
        monkeypatch.delenv(name, raising=False)


pieces = st.dictionaries(st.integers(1, STEPS - 1), st.sampled_from([0.1, 0.01, 1]), max_size=3)
schedule = st.tuples(st.sampled_from([0.1, 0.2]), pieces).map(
    lambda drawn: {"lr": [(0, drawn[0]), *sorted(drawn[1].items())]}
)


def prefixes(schedules: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the distinct sequences of values up to each step, by what the words say."""
    found = set()
    for each in schedules:
        changes = dict(each["lr"])
        values: list[Any] = []
        for number in range(STEPS):
            values.append(changes.get(number, values[-1] if values else None))
            found.add(repr(values))
    return found


@settings(max_examples=25, deadline=None)
@given(st.lists(schedule, min_size=1, max_size=8), st.lists(schedule, min_size=1, max_size=3))
def test_each_distinct_prefix_runs_once_and_results_are_those_of_running_alone(
    schedules: list[dict[str, Any]], later: list[dict[str, Any]]
) -> None:
    study = run(schedules)
    counts = study.saved
    assert counts.run == counts.tree == len(prefixes(schedules))
    assert counts.alone == STEPS * len(schedules)
    study.extend(later)
    assert study.saved.tree == len(prefixes(schedules + later))
    for number, each in enumerate(schedules + later, 1):
        assert study.curve(number) == run([each]).curve(1)


def test_checkpoints_that_do_not_fit_change_no_result() -> None:
    schedules = [decays((at, lr)) for at in (3, 6, 9) for lr in (0.01, 0.02, 0.03)]
    expected = run(schedules).trials()
    for memory, disk in ((0, 1 << 30), (0, 0), (3000, 3000)):
        study = run(schedules, memory=memory, disk=disk)
        assert study.trials() == expected
        assert study.saved.run == study.saved.tree
        # What later schedules need may be gone: its steps run again.
        row = study.extend([decays((5, 0.5))])[0]
        assert row["loss"] == run([decays((5, 0.5))]).best["loss"]


def test_the_callers_random_states_are_given_back() -> None:
    random.seed(5)
    np.random.seed(5)
    states = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    run([decays()])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states  # type: ignore[index,union-attr]


def test_another_seed_gives_other_results() -> None:
    assert run([decays()], seed=1).best["loss"] != run([decays()]).best["loss"]


def count_down(state: list[float], values: Mapping[str, Any], number: int) -> dict[str, float]:
    state[0] = values["to"]
    return {"loss": values["to"], "number": number}


def simple(values: Sequence[Any], **options: Any) -> StageStudy:
    schedules = [{"to": value} for value in values]
    return carrel.stages(lambda: [0.0], count_down, schedules, steps=4, objective="loss", **options)


def test_rows_and_the_best_trial() -> None:
    study = simple([3, 1, float("inf"), 2])
    assert study.trials()[1] == {
        "trial": 2, "state": "complete", "steps": 4, "to": 1, "loss": 1.0, "number": 3.0,
    }  # fmt: skip
    assert study.best["trial"] == 2
    assert simple([3, 1, 4, 2], maximize=True).best["trial"] == 3
    assert study.curve(4, "number") == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_trial_with_nan_is_the_worst() -> None:
    def diverges(state: Any, values: Mapping[str, Any], number: int) -> float:
        return float("nan") if values["lr"] > 1 else 0.5

    study = carrel.stages(dict, diverges, [{"lr": 2.0}, {"lr": 0.1}], steps=2, objective="loss")
    assert study.best["trial"] == 2
    study = carrel.stages(dict, diverges, [{"lr": 2.0}], steps=2, objective="loss")
    with pytest.raises(ValueError, match="all values are NaN or infinite"):
        _ = study.best


def test_only_the_best_trials_go_on_behind_a_step_of_prune() -> None:
    study = simple([5, 1, 4, 2, 3], prune={1: 3, 2: 1})
    assert [(row["state"], row["steps"]) for row in study.trials()] == [
        ("pruned", 1), ("complete", 4), ("pruned", 1), ("pruned", 2), ("pruned", 2),
    ]  # fmt: skip
    assert study.saved.run == 5 + 3 - 1 + 1 + 1 - 1 + 1 + 2 - 1 == study.saved.alone
    study.extend([{"to": 0}, {"to": 9}])
    assert [(row["state"], row["steps"]) for row in study.trials()[5:]] == [
        ("complete", 4), ("pruned", 1),
    ]  # fmt: skip


def test_a_study_goes_on_from_the_snapshot_of_its_notebook() -> None:
    study = run([decays((6, 0.01)), decays((6, 0.02))])
    copied = cloudpickle.loads(cloudpickle.dumps(study))
    assert copied.trials() == study.trials()
    assert copied.extend([decays((6, 0.03))])[0]["loss"] == run([decays((6, 0.03))]).best["loss"]


def test_the_same_schedule_with_more_steps_goes_on_where_it_ended() -> None:
    study = simple([3, 1])
    row = study.extend([{"to": 1}], steps=10)[0]
    assert (row["steps"], row["number"]) == (10, 9)
    assert study.saved.run == 4 + 10


def test_the_tree_is_drawn() -> None:
    study = run([decays(), decays((6, 0.01)), decays((6, 0.01), (9, 0.2)), {"lr": 0.5}])
    assert str(study) == (
        "4 trials: 33 steps instead of 48, 31 % saved.\n"
        "\n"
        "lr=0.1: steps 0 to 5, once for 3 trials\n"
        "├── lr=0.1: steps 6 to 11, trial 1\n"
        "└── lr=0.01: steps 6 to 8, once for 2 trials\n"
        "    ├── lr=0.01: steps 9 to 11, trial 2\n"
        "    └── lr=0.2: steps 9 to 11, trial 3\n"
        "lr=0.5: steps 0 to 11, trial 4"
    )
    assert study._repr_html_().startswith("<pre>4 trials")
    many = run([{"lr": number / 100} for number in range(70)])
    assert str(many).endswith("… and 10 stages more")


def test_the_example_of_the_documentation_prints_its_tree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "docs" / "how-to" / "sweeps.md").read_text(encoding="utf-8")
    section = page.partition("## Share training steps")[2]
    code, shown = section.split("```python\n")[1], section.split("```text\n")[1]
    exec(code.partition("```")[0], {"__name__": "__main__"})  # noqa: S102  # our own example
    assert capsys.readouterr().out == shown.partition("```")[0]


def test_the_page_of_a_job_gets_the_best_objective_and_a_curve_per_trial_of_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_REPORTS", str(tmp_path / "reports"))
    simple([3, 1, 2])
    lines = [json.loads(line) for line in (tmp_path / "reports").read_text().splitlines()]
    best = [(line["step"], line["value"]) for line in lines if line["name"] == "loss"]
    assert best == [(1, 3), (2, 1), (3, 1)]
    assert [line["value"] for line in lines if line["name"] == "loss, trial 2"] == [1] * 4


def test_what_cannot_run_is_refused_with_a_sentence() -> None:
    def refused(kind: type[Exception], message: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(kind) as error:
            carrel.stages(*arguments, **{"steps": 4, **options})
        assert message in str(error.value)

    one = [{"lr": 0.1}]
    refused(ValueError, "There are no schedules", dict, step, [])
    refused(TypeError, "schedules is a list of dicts", dict, step, {"lr": 0.1})
    refused(ValueError, "Schedule 2 has the parameters momentum; all schedules have the same ones, "
            "here lr.", dict, step, [*one, {"momentum": 1}])  # fmt: skip
    refused(TypeError, "start is a function, not {}", {}, step, one)
    refused(ValueError, "steps is a whole number from 1 on, not 0", dict, step, one, steps=0)
    refused(TypeError, "steps is a whole number, not 1.5", dict, step, one, steps=1.5)
    refused(ValueError, "prune needs an objective", dict, step, one, prune={2: 1})
    refused(ValueError, "prune: step 4 is not before the end, 4.", dict, step, one,
            prune={4: 1}, objective="loss")  # fmt: skip
    refused(ValueError, "seed is a whole number", dict, step, one, seed=-1)
    refused(TypeError, "start() has returned None, which no step can change", print, step, one)
    refused(TypeError, "The state cannot be copied:", lambda: [open(__file__)], step, one)  # noqa: SIM115
    refused(TypeError, "the value of a report is one number, not str", dict,
            lambda *_: "low", one)  # fmt: skip
    refused(ValueError, "No step of trial 1 has returned loss", dict, lambda *_: None, one,
            objective="loss")  # fmt: skip
    with pytest.raises(ValueError, match="best needs an objective"):
        _ = carrel.stages(dict, lambda *_: None, one, steps=1).best


def test_an_error_of_a_step_says_where_it_was_and_the_study_has_run_so_far() -> None:
    def fails(state: Any, values: Mapping[str, Any], number: int) -> None:
        if number == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        carrel.stages(dict, fails, [{"lr": 0.1}], steps=4)
    assert error.value.__notes__ == ["in step 3 with {'lr': 0.1}"]
