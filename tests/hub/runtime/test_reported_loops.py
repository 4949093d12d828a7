"""Which of the loops that an attempt reports is that of the whole work."""

from __future__ import annotations

import pytest

from carrel.hub.records.events import EventRecord
from carrel.hub.records.json_value import Json
from carrel.hub.runtime.reported_loops import ReportedLoops, loops_after


def loops(
    *reports: tuple[Json, ...],
    epoch: int = 1,
    cell: Json = None,
    before: ReportedLoops | None = None,
) -> ReportedLoops | None:
    """Report ``done``, ``of`` and a text, which may be left out, one each second."""
    found = before
    for at, (done, of, *text) in enumerate(reports, start=100):
        data: dict[str, Json] = {"number": cell, "done": done, "of": of, "text": "".join(text)}  # type: ignore[arg-type]
        event = EventRecord(
            id=1, request_id="j", epoch=epoch, at=float(at), kind="progress", data=data
        )
        found = loops_after(found, event)
    return found


EPOCH = [(step, 100) for step in range(0, 100, 20)]
NESTED: list[tuple[Json, Json]] = [report for epoch in range(4) for report in ((epoch, 10), *EPOCH)]


def of_ten(text: str, *steps: int) -> list[tuple[Json, ...]]:
    """Return reports of a loop of ten steps; ``#`` in the text is the number of the step."""
    return [(step, 10, text.replace("#", str(step))) for step in steps]


ALIKE = [
    report
    for epoch in range(4)
    for report in (*of_ten("epoch", epoch), *of_ten("batch, loss 1.#e-05", 0, 4, 8))
]
"""An outer and an inner loop with the same number of steps."""


@pytest.mark.parametrize(
    ("reports", "whole"),
    [
        (ALIKE, (10, 0, 3)),
        (ALIKE[:4], (10, 0, 0)),
        ([report[:2] for report in ALIKE], None),
        (of_ten("prepare", 3, 7, 10) + of_ten("train", 0, 2), (10, 0, 2)),
        (of_ten("prepare", 3, 7) + of_ten("train", 8, 9), (10, 8, 9)),
        (of_ten("a", 1, 9) + of_ten("b", 1, 9) + of_ten("c", 1, 2), None),
        (of_ten("loss 0.#, step #", 0, 3, 7), (10, 0, 7)),
        (
            of_ten("anna.csv", 0)
            + of_ten("bert.csv", 1)
            + of_ten("cara.csv", 2)
            + of_ten("dora.csv", 3)
            + of_ten("anna.csv", 4),
            (10, 0, 4),
        ),
        (of_ten("epoch", 0) + of_ten("batch", 0) + of_ten("check", 0), (10, 0, 0)),
    ],
    ids=[
        "an outer loop",
        "an outer loop before its second step",
        "an outer loop without a text",
        "a loop after another one",
        "a loop after another one that was seen late",
        "the third of several loops",
        "a text with a number",
        "a text of each step",
        "three loops at their beginning",
    ],
)
def test_loops_with_the_same_number_of_steps_are_told_apart_by_their_texts(
    reports: list[tuple[Json, ...]], whole: tuple[float, float, float] | None
) -> None:
    found = loops(*reports)
    assert found is not None
    loop = found.whole
    assert (None if loop is None else (loop.of, loop.first[1], loop.newest[1])) == whole


@pytest.mark.parametrize(
    ("reports", "whole"),
    [
        (EPOCH, (100, 0, 80)),
        ([*EPOCH, (100, 100), (0, 7), (1, 7)], (7, 0, 1)),
        (EPOCH * 2, None),
        ([*EPOCH, *EPOCH, (0, 7), (1, 7)], None),
        (NESTED, (10, 0, 3)),
        (NESTED[:6], (10, 0, 0)),
        ([(number, number + 1) for number in range(20)], None),
        ([*EPOCH, (6, 6), (7, 7), (1, 9)], None),
    ],
    ids=[
        "one loop",
        "a loop after another one",
        "a loop that begins again",
        "a new loop after one that has begun again",
        "an outer loop",
        "an outer loop before its second step",
        "an end that moves",
        "the fourth of several loops",
    ],
)
def test_the_loop_of_the_whole_work(
    reports: list[tuple[Json, Json]], whole: tuple[float, float, float] | None
) -> None:
    found = loops(*reports)
    assert found is not None
    loop = found.whole
    assert (None if loop is None else (loop.of, loop.first[1], loop.newest[1])) == whole


def test_another_cell_and_another_attempt_start_from_the_beginning() -> None:
    before = loops(*EPOCH, *EPOCH, cell=1)
    for found in (
        loops((3, 100), cell=2, before=before),
        loops((3, 100), cell=1, epoch=2, before=before),
    ):
        assert found is not None
        assert found.whole is not None
        assert found.whole.newest[1] == 3


@pytest.mark.parametrize(
    ("done", "of"), [(5, None), (6, 5), (-1, 5), (float("nan"), 5), ("5", 9), (5, 1e300), (1, True)]
)
def test_progress_without_a_usable_end_is_left_out(done: Json, of: Json) -> None:
    assert loops((done, of)) is None
