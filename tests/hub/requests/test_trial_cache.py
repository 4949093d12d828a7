"""Trials that were read before are not read again; stops at the same time are all kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from carrel.hub.attempts.trials import (
    TRIALS,
    TrialRecord,
    TrialState,
    add_trials,
    read_stopped,
    stop_trial,
)
from carrel.hub.requests.trial_cache import TrialCache
from carrel.hub.sweeps.trials import Trial


def trial(number: int, state: TrialState = TrialState.SUCCEEDED) -> TrialRecord:
    return TrialRecord(number=number, state=state, at=5.0)


def test_only_new_lines_are_read(tmp_path: Path) -> None:
    cache, file = TrialCache(), tmp_path / TRIALS
    add_trials(tmp_path, [trial(1), trial(2, TrialState.RUNNING)])
    assert cache.records(tmp_path, TRIALS) == {1: trial(1), 2: trial(2, TrialState.RUNNING)}
    with file.open("r+b") as changed:
        changed.write(b"x" * file.stat().st_size)
    add_trials(tmp_path, [trial(2), trial(3)])
    assert cache.records(tmp_path, TRIALS) == {1: trial(1), 2: trial(2), 3: trial(3)}
    assert TrialCache().records(tmp_path, TRIALS).keys() == {2, 3}


def test_a_line_that_is_not_complete_is_read_when_it_is(tmp_path: Path) -> None:
    cache, file = TrialCache(), tmp_path / TRIALS
    add_trials(tmp_path, [trial(1), trial(2)])
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    assert cache.records(tmp_path, TRIALS).keys() == {1}
    with file.open("ab") as more:
        more.write(whole[-9:])
    assert cache.records(tmp_path, TRIALS).keys() == {1, 2}


def test_a_file_that_was_replaced_or_deleted_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    cache, file = TrialCache(), tmp_path / TRIALS
    add_trials(tmp_path, [trial(1), trial(2)])
    assert cache.records(tmp_path, TRIALS).keys() == {1, 2}
    file.rename(tmp_path / "old")
    add_trials(tmp_path, [trial(3), trial(4), trial(5)])
    assert cache.records(tmp_path, TRIALS).keys() == {3, 4, 5}
    file.unlink()
    assert cache.records(tmp_path, TRIALS) == {}


def test_the_trials_of_a_space_are_made_once_and_forgotten_at_last() -> None:
    cache, made = TrialCache(), list[str]()

    def make(name: str) -> tuple[Trial, ...]:
        made.append(name)
        return (Trial(number=1, values={"lr": name}),)

    for name in ("a", "a", *map(str, range(16)), "a"):
        assert cache.planned(name, lambda name=name: make(name))[0].values == {"lr": name}
    assert made == ["a", *map(str, range(16)), "a"]


def test_stops_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: stop_trial(tmp_path, number), range(1, 41)))
    assert read_stopped(tmp_path) == set(range(1, 41))
