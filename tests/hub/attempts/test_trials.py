"""What an attempt of a sweep leaves to the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.attempts.trials import (
    EARLIER_TRIALS,
    TrialRecord,
    TrialState,
    add_trials,
    finished_trials,
    hand_over_trials,
    notebook_name,
    read_trials,
    reports_name,
)


@pytest.fixture
def attempts(tmp_path: Path) -> tuple[Path, Path]:
    earlier, later = tmp_path / "1", tmp_path / "2"
    for folder in (earlier, later):
        (folder / "files").mkdir(parents=True)
    return earlier, later


def record(number: int, state: TrialState, **given: float) -> TrialRecord:
    return TrialRecord(number=number, state=state, at=1.0, values=given)


def test_a_trial_that_was_stopped_early_is_handed_over_with_its_notebook(
    attempts: tuple[Path, Path],
) -> None:
    earlier, later = attempts
    add_trials(earlier, [record(1, TrialState.PRUNED, x=0.5), record(2, TrialState.RUNNING, x=1)])
    for number in (1, 2):
        (earlier / "files" / notebook_name(number)).write_text("{}")
        (earlier / reports_name(number)).write_text("")
    hand_over_trials(earlier, later)
    found = read_trials(later, EARLIER_TRIALS)
    assert {n: one.values for n, one in found.items()} == {1: {"x": 0.5}, 2: {"x": 1}}
    assert set(finished_trials(found)) == {1}
    assert (later / reports_name(1)).exists()
    assert [each.name for each in (later / "files").iterdir()] == [notebook_name(1)]


def test_values_are_handed_over_before_any_trial_has_finished(attempts: tuple[Path, Path]) -> None:
    earlier, later = attempts
    add_trials(earlier, [record(1, TrialState.RUNNING, x=0.5)])
    hand_over_trials(earlier, later)
    assert read_trials(later, EARLIER_TRIALS)[1].values == {"x": 0.5}


def test_trials_of_a_grid_that_have_not_finished_are_not_handed_over(
    attempts: tuple[Path, Path],
) -> None:
    earlier, later = attempts
    add_trials(earlier, [record(1, TrialState.RUNNING), record(2, TrialState.FAILED)])
    hand_over_trials(earlier, later)
    assert not (later / EARLIER_TRIALS).exists()
