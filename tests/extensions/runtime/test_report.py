"""``carrel.report`` appends lines, and refuses what is no value."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import carrel
from carrel.extensions.runtime import report as module
from carrel.hub.attempts import reports
from carrel.hub.attempts.reports import ReportedSeries, joined, read_reports, thinned


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CARREL_REPORTS", str(tmp_path / "reports.jsonl"))
    return tmp_path / "reports.jsonl"


def test_values_are_recorded_by_name_and_step(path: Path) -> None:
    for value in (3, np.float32(0.5), np.array([0.25])):
        carrel.report("loss", value)
    carrel.report("accuracy", 0.5, step=10)
    carrel.report("accuracy", 0.6, step=10)
    carrel.report("accuracy", float("nan"))
    found = read_reports(path.parent)
    assert (found["loss"].steps, found["loss"].values) == ((0, 1, 2), (3.0, 0.5, 0.25))
    assert found["accuracy"].steps == (10, 11)
    assert found["accuracy"].values[0] == 0.6
    assert math.isnan(found["accuracy"].last)
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 2), "the name of a report is text, not int"),
        (("", 2), "the name of a report has 1 to 100 printable characters"),
        (("a\nb", 2), "printable"),
        (("loss", "high"), "the value of a report is one number, not str"),
        (("loss", "0.5"), "the value of a report is one number, not str"),
        (("loss", True), "the value of a report is one number, not bool"),
        (("loss", 1j), "the value of a report is one number, not complex"),
        (("loss", 10**400), "the value of a report is a number up to 1.8e308"),
        (("loss", 1, True), "the step of a report is a whole number, not bool"),
        (("loss", 1, 2**53), "the step of a report is a whole number from 0"),
        (("loss", np.zeros(2)), "the value of a report is one number, not ndarray"),
        (("loss", 1, 0.5), "the step of a report is a whole number, not float"),
        (("loss", 1, -1), "the step of a report is a whole number from 0, not -1"),
    ],
)
def test_what_is_no_report_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        carrel.report(*arguments)


def test_outside_of_a_job_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARREL_REPORTS", raising=False)
    carrel.report("loss", 1)


def test_a_full_file_is_told_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 80)
    carrel.report("loss", 1)
    with pytest.warns(UserWarning, match="values are not recorded"):
        carrel.report("loss", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carrel.report("loss", 3)
    assert path.stat().st_size <= 80


def test_lines_of_other_processes_count_towards_the_limit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_LINES", 4)
    carrel.report("loss", 1)
    with path.open("a") as other:
        other.write("{}\n{}\n")
    carrel.report("loss", 2)
    with pytest.warns(UserWarning, match="values are not recorded: more than 4 values"):
        carrel.report("loss", 3)
    assert len(path.read_text().splitlines()) == 4


def test_each_line_is_strict_json_and_the_variable_is_read_at_each_call(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for value in (math.nan, math.inf, -math.inf):
        carrel.report("x", value)
    lines = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    assert [line["value"] for line in lines] == ["NaN", "Infinity", "-Infinity"]
    assert read_reports(path.parent)["x"].values[1:] == (math.inf, -math.inf)
    monkeypatch.setenv("CARREL_REPORTS", str(path.with_name("other")))
    carrel.report("x", 1)
    assert len(path.read_text().splitlines()) == 3
    assert read_reports(path.parent, "other")["x"].values == (1.0,)


@pytest.mark.filterwarnings("ignore:carrel.report")
def test_a_link_is_not_followed(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))
    carrel.report("loss", 1)
    assert not path.with_name("elsewhere").exists()


def test_a_full_disk_fails_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_REPORTS", "/dev/full")
    with pytest.warns(UserWarning, match="No space left"):
        carrel.report("loss", 1)


def test_a_file_that_cannot_be_written_fails_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_REPORTS", "/nowhere/at/all")
    with pytest.warns(UserWarning, match="No such file"):
        carrel.report("loss", 1)


def test_lines_that_are_no_reports_are_left_out(path: Path) -> None:
    path.write_text('[]\n{}\nx\n{"name": "a", "value": "y", "step": 1}\n{"name": "a", "value": 1, ')
    assert read_reports(path.parent) == {}
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert read_reports(path.parent) == {}


@pytest.mark.parametrize(
    ("name", "value", "step"),
    [
        ('"a"', "1" + "0" * 400, "1"),
        ('"a"', "1", "1" + "0" * 400),
        ('"a"', "1", str(2**53)),
        ('"a"', "1", "true"),
        ('"a"', "1", "-1"),
        ('"a"', '"0.5"', "1"),
        ('"a"', "null", "1"),
        ('"\\ud800"', "1", "1"),
        ('"a\\u0000"', "1", "1"),
        ('"a"', "1" + " " * 5000, "1"),
    ],
)
def test_a_line_that_the_job_has_made_up_is_left_out(
    path: Path, name: str, value: str, step: str
) -> None:
    odd = f'{{"name": {name}, "value": {value}, "step": {step}}}'
    path.write_text(f'{odd}\n{{"name": "a", "value": 2, "step": 5}}\n')
    assert read_reports(path.parent) == {"a": ReportedSeries(steps=(5,), values=(2.0,))}


def series(start: int, *values: float) -> ReportedSeries:
    return ReportedSeries(steps=tuple(range(start, start + len(values))), values=values)


def test_an_attempt_continues_or_replaces_the_values_of_the_one_before() -> None:
    first = {"loss": series(0, 9, 8, 7, 6), "first": series(1, 1)}
    resumed = {"loss": series(2, 5, 4), "new": series(0, 2)}
    assert joined([resumed, first]) == {
        "loss": series(0, 9, 8, 5, 4), "new": series(0, 2), "first": series(1, 1),
    }  # fmt: skip  # grouped by meaning
    assert joined([{"loss": series(0, 3)}, first]) == {"loss": series(0, 3)}


def test_lines_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST_LINES", 2)
    for value in (1, 2, 3):
        carrel.report("loss", value)
    assert read_reports(path.parent)["loss"].values == (1.0, 2.0)


@given(st.lists(st.floats(allow_nan=True), min_size=1, max_size=300), st.integers(4, 50))
def test_a_thinned_series_keeps_its_ends_and_extremes(values: list[float], points: int) -> None:
    series = ReportedSeries(steps=range(len(values)), values=values)
    found = thinned(series, points)
    assert len(found.steps) <= max(points, 2)
    assert (found.steps[0], found.steps[-1]) == (0, len(values) - 1)
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        assert {min(finite), max(finite)} <= set(found.values)


@pytest.fixture
def trial_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[float]]]:
    """Report for three trials that are trained as one; return the values of each."""
    files = [path.with_name(f"reports-{number}.jsonl") for number in (1, 2, 3)]
    monkeypatch.setenv("CARREL_TRIAL_REPORTS", "\n".join(map(str, files)))

    def values() -> list[list[float]]:
        found = (read_reports(path.parent, each.name) for each in files)
        return [list(each["loss"].values) if each else [] for each in found]

    return values


def test_trials_that_are_trained_as_one_report_a_value_each(
    path: Path, trial_files: Callable[[], list[list[float]]]
) -> None:
    carrel.report("loss", [0.5, 2, np.float32(0.25)], 0)
    carrel.report("loss", np.array([1.0, math.inf, 3.0]), 1)
    carrel.report("loss", (4, 5, 6), 2)
    for at, one in enumerate((7, np.array([8.0]), np.float64(9.0)), start=3):
        carrel.report("loss", one, at)
    ones = [7, 8, 9]
    assert trial_files() == [
        [0.5, 1, 4, *ones],
        [2, math.inf, 5, *ones],
        [0.25, 3, 6, *ones],
    ]
    assert not path.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "3 trials are trained as one: the value of a report is one number, or 3 of them"),
        ([], "one a trial, not 0"),
        (np.zeros(4), "one a trial, not 4"),
        (np.zeros((3, 2)), "the value of a report is one number, not list"),
        ([1, "x", 3], "the value of a report is one number, not str"),
        ([1, True, 3], "the value of a report is one number, not bool"),
    ],
)
def test_a_vector_that_does_not_fit_the_trials_is_refused_and_nothing_written(
    trial_files: Callable[[], list[list[float]]], value: Any, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        carrel.report("loss", value)
    assert trial_files() == [[], [], []]


@pytest.mark.parametrize("value", [[1, 2], (1, 2), [1]])
def test_a_vector_is_no_value_of_a_single_run(path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="the value of a report is one number, not"):
        carrel.report("loss", value)
    assert not path.exists()
