"""The best split of a chain of operations into stages."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput
from carrel.hub.insight.pipeline_split import (
    Operation,
    best_split,
    operations_from_csv,
    split_at,
)


def chain(*seconds: float, result_bytes: float = 0.0) -> list[Operation]:
    return [Operation(seconds=each, result_bytes=result_bytes) for each in seconds]


def test_equal_operations_are_divided_equally() -> None:
    assert best_split(chain(1, 1, 1, 1), [1.0], 8).cuts == (2,)


def test_a_link_that_costs_more_than_it_saves_is_not_used() -> None:
    assert best_split(chain(1, 1, result_bytes=100.0), [1.0], 8).cuts == ()


def test_one_micro_batch_gains_nothing_from_a_second_device() -> None:
    assert best_split(chain(1, 1, result_bytes=0.1), [1.0], 1).seconds == 2


def test_memory_forces_a_split_and_may_be_too_little() -> None:
    large = [Operation(seconds=1, result_bytes=100, memory=6), Operation(seconds=1, memory=6)]
    assert best_split(large, [1.0], 1, memory=10).cuts == (1,)
    with pytest.raises(InvalidInput, match="does not fit on 2 devices"):
        best_split(large, [1.0], 1, memory=5)


def test_nothing_to_split_is_refused() -> None:
    with pytest.raises(InvalidInput, match="0 operations"):
        best_split([], [1.0], 1)


def test_operations_are_read_from_csv() -> None:
    lines = ["name,seconds,result_bytes", "embed,0.5,0", "block, 2, 1e6"]
    assert operations_from_csv(lines) == [
        Operation(seconds=0.5, result_bytes=0, name="embed"),
        Operation(seconds=2, result_bytes=1e6, name="block"),
    ]
    with pytest.raises(InvalidInput, match="Line 2: '-1' is not a value of result_bytes"):
        operations_from_csv(["seconds,result_bytes", "1,-1"])


times = st.floats(0.01, 100.0)
operations = st.builds(
    Operation,
    seconds=times,
    result_bytes=st.floats(0.0, 100.0),
    memory=st.sampled_from((0.25, 0.5, 1.0)),
)


@given(
    st.lists(operations, min_size=1, max_size=7),
    st.lists(times, max_size=3),
    st.integers(1, 20),
    st.sampled_from([math.inf, 1.5]),
)
def test_no_split_takes_less_time(
    steps: list[Operation], links: list[float], micro_batches: int, memory: float
) -> None:
    def fits(cuts: tuple[int, ...]) -> bool:
        bounds = [0, *cuts, len(steps)]
        stages = [steps[a:b] for a, b in pairwise(bounds)]
        return all(sum(each.memory for each in stage) <= memory for stage in stages)

    best = min(
        (
            split_at(steps, cuts, links, micro_batches).seconds
            for count in range(min(len(links) + 1, len(steps)))
            for cuts in combinations(range(1, len(steps)), count)
            if fits(cuts)
        ),
        default=math.inf,
    )
    if math.isinf(best):
        with pytest.raises(InvalidInput):
            best_split(steps, links, micro_batches, memory=memory)
    else:
        found = best_split(steps, links, micro_batches, memory=memory)
        assert found.seconds == pytest.approx(best)
