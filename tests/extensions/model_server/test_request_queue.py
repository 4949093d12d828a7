"""Batches, deadlines and refusals of the queue in front of models."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from carrel.extensions.model_server.execution_times import ExecutionTimes
from carrel.extensions.model_server.model_results import ModelFailed, UnusableResult
from carrel.extensions.model_server.request_queue import (
    ExecutionTooSlow,
    QueueCounts,
    RequestQueue,
)
from carrel.hub.errors import NotFound, TooLarge, TooManyCalls


class HeldModel:
    """Doubles numbers, when a test lets it; -1 fails."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, rows: list[int]) -> list[int]:
        self.calls.append(rows)
        self.begun.set()
        assert self.may_end.wait(60)
        if -1 in rows:
            raise ValueError("a negative number")
        return [2 * row for row in rows]


def with_queue(
    test: Callable[[RequestQueue, HeldModel], Coroutine[Any, Any, None]], **limits: Any
) -> None:
    """Run a test beside a worker that executes a first request, which is held."""

    async def run() -> None:
        model = HeldModel()
        queue = RequestQueue({"double": model, "short": lambda _rows: []}, **limits)
        worker = asyncio.create_task(queue.work())
        first = asyncio.create_task(queue.execute("double", [0]))
        assert await asyncio.to_thread(model.begun.wait, 60)
        try:
            await test(queue, model)
        finally:
            model.may_end.set()
            assert await first == [0]
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker

    asyncio.run(run())


async def queued(*calls: Awaitable[list[Any]]) -> list[asyncio.Future[list[Any]]]:
    """Return calls as tasks that have entered the queue."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    return tasks


def test_requests_that_wait_are_executed_together() -> None:
    async def test(queue: RequestQueue, model: HeldModel) -> None:
        tasks = await queued(*(queue.execute("double", [row]) for row in (1, 2, 3)))
        model.may_end.set()
        assert await asyncio.gather(*tasks) == [[2], [4], [6]]
        assert model.calls == [[0], [1, 2, 3]]

    with_queue(test)


def test_a_batch_has_so_many_rows() -> None:
    async def test(queue: RequestQueue, model: HeldModel) -> None:
        tasks = await queued(*(queue.execute("double", [row, row]) for row in (1, 2, 3)))
        model.may_end.set()
        await asyncio.gather(*tasks)
        assert model.calls == [[0], [1, 1, 2, 2], [3, 3]]

    with_queue(test, batch_rows=5)


def test_a_full_queue_refuses_at_once() -> None:
    async def test(queue: RequestQueue, model: HeldModel) -> None:
        tasks = await queued(queue.execute("double", [1, 2]))
        with pytest.raises(TooManyCalls, match="2 rows wait already") as caught:
            await queue.execute("double", [3])
        assert caught.value.seconds >= 1
        model.may_end.set()
        assert await tasks[0] == [2, 4]
        assert queue.counts == QueueCounts(answered=2, refused=1)

    with_queue(test, queued_rows=2)


def test_a_request_that_would_be_late_is_refused_at_once() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        nonlocal now
        model.may_end.set()
        await queue.execute("double", [1], 10)
        model.may_end.clear()
        model.begun.clear()
        (slow,) = await queued(queue.execute("double", [1], 10))
        assert await asyncio.to_thread(model.begun.wait, 60)
        now += 5.0
        model.may_end.set()
        await slow
        model.may_end.clear()
        model.begun.clear()
        tasks = await queued(queue.execute("double", [2], 10))
        assert await asyncio.to_thread(model.begun.wait, 60)
        with pytest.raises(TooManyCalls, match=r"an answer is expected in .*, too late for 1 s"):
            await queue.execute("double", [3], 1)
        model.may_end.set()
        await asyncio.gather(*tasks)
        # An idle queue executes it, whatever was measured before.
        assert await queue.execute("double", [3], 1) == [6]

    with_queue(test, clock=lambda: now)


def test_the_first_execution_says_nothing_of_the_next_ones() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        nonlocal now
        now += 60.0  # imports and compiles
        model.may_end.set()
        calls = [queue.execute("double", [row], 1) for row in (1, 2)]
        assert await asyncio.gather(*calls) == [[2], [4]]
        assert queue.counts.refused == queue.counts.late == 0

    with_queue(test, clock=lambda: now)


def test_a_batch_makes_no_member_late() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        nonlocal now
        now += 1.0
        queue.times.row_seconds["double"] = 1.0
        soon, *others = await queued(
            queue.execute("double", [1], 2.9),
            *(queue.execute("double", [row], 20) for row in (2, 3)),
        )
        model.may_end.set()
        await asyncio.gather(soon, *others)
        assert model.calls[:2] == [[0], [1, 2]]

    with_queue(test, clock=lambda: now)


def test_the_earliest_deadline_is_executed_first() -> None:
    async def test(queue: RequestQueue, model: HeldModel) -> None:
        queue.models = {**queue.models, "other": model}
        calls = [("double", 1, 60), ("other", 2, 20), ("double", 3, 40), ("other", 4, 80)]
        tasks = await queued(*(queue.execute(name, [row], time) for name, row, time in calls))
        model.may_end.set()
        assert await asyncio.gather(*tasks) == [[2], [4], [6], [8]]
        assert model.calls == [[0], [2], [3], [1], [4]]

    with_queue(test, batch_rows=1)


def test_a_request_before_those_that_wait_is_admitted_by_its_own_deadline() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        queue.times.row_seconds["double"] = 1.0
        late = await queued(*(queue.execute("double", [row], 60) for row in range(1, 7)))
        (soon,) = await queued(queue.execute("double", [9], 2))
        model.may_end.set()
        assert await soon == [18]
        assert model.calls[1][0] == 9
        await asyncio.gather(*late)
        assert queue.counts.refused == queue.counts.late == 0

    with_queue(test, clock=lambda: now)


def test_a_request_that_would_make_another_one_late_is_refused() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        queue.times.row_seconds["double"] = 1.0
        (waits,) = await queued(queue.execute("double", [1] * 7, 10))
        with pytest.raises(TooManyCalls, match="a request to double that waits already would be"):
            await queue.execute("double", [2, 2], 5)
        (fits,) = await queued(queue.execute("double", [3], 5))
        model.may_end.set()
        assert await fits == [6]
        assert await waits == [2] * 7

    with_queue(test, clock=lambda: now)


def test_an_execution_that_overruns_its_time_is_expected_to_need_half_of_it_still() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        nonlocal now
        model.may_end.set()
        await queue.execute("double", [1])
        queue.times.row_seconds["double"] = 1.0
        model.may_end.clear()
        model.begun.clear()
        (runs,) = await queued(queue.execute("double", [1] * 10, 60))
        assert await asyncio.to_thread(model.begun.wait, 60)
        now += 11.0
        assert queue.expected_wait(now) == 5.0
        with pytest.raises(TooManyCalls, match=r"an answer is expected in 6\.00 s"):
            await queue.execute("double", [2], 3)
        model.may_end.set()
        await runs

    with_queue(test, clock=lambda: now)


def test_a_request_that_waits_is_refused_at_its_deadline_while_another_hangs() -> None:
    async def test(queue: RequestQueue, _model: HeldModel) -> None:
        with pytest.raises(TooManyCalls, match="executing double since"):
            await asyncio.wait_for(queue.execute("double", [1], 0.05), 60)
        assert queue.counts.late == 1
        assert queue.expected_wait(queue.clock()) == 0

    with_queue(test)


def test_a_call_in_a_slow_batch_with_rows_of_others_may_try_again() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def hangs(rows: list[int]) -> list[int]:
        if rows == [0]:
            return rows
        begun.set()
        assert may_end.wait(60)
        return rows

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        queue.models = {**queue.models, "hangs": hangs}
        model.may_end.set()
        assert await queue.execute("hangs", [0]) == [0]
        model.begun.clear()
        model.may_end.clear()
        (held,) = await queued(queue.execute("double", [1], 60))
        assert await asyncio.to_thread(model.begun.wait, 60)
        short, long = await queued(
            queue.execute("hangs", [1], 2), queue.execute("hangs", [2, 3], 60)
        )
        model.may_end.set()
        assert await asyncio.to_thread(begun.wait, 60)
        with pytest.raises(TooManyCalls, match=r"beside 2 rows of other calls.*hangs since"):
            await asyncio.wait_for(short, 60)
        running = queue.running()
        assert running is not None
        assert running[0] == "hangs"
        may_end.set()
        assert await long == [2, 3]
        assert await held == [2]
        assert queue.counts == QueueCounts(answered=4, late=1)
        assert queue.running() is None

    with_queue(test)


def test_after_an_error_in_a_batch_only_the_call_that_is_executed_alone_is_too_slow() -> None:
    alone, may_end = threading.Event(), threading.Event()

    def raises_together(rows: list[int]) -> list[int]:
        if len(rows) > 1:
            raise ValueError("one row at a time")
        if rows != [0]:
            alone.set()
            assert may_end.wait(60)
        return rows

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        queue.models = {**queue.models, "single": raises_together}
        model.may_end.set()
        assert await queue.execute("single", [0]) == [0]
        model.begun.clear()
        model.may_end.clear()
        (held,) = await queued(queue.execute("double", [1], 60))
        assert await asyncio.to_thread(model.begun.wait, 60)
        executed, waits = await queued(
            queue.execute("single", [1], 2), queue.execute("single", [2], 2.1)
        )
        model.may_end.set()
        assert await asyncio.to_thread(alone.wait, 60)
        with pytest.raises(ExecutionTooSlow, match="executing single since"):
            await asyncio.wait_for(executed, 60)
        with pytest.raises(TooManyCalls, match="executing single since"):
            await asyncio.wait_for(waits, 60)
        may_end.set()
        assert await held == [2]

    with_queue(test, clock=lambda: 0.0)


@pytest.mark.parametrize(
    ("waited", "expected", "error"),
    [
        (0.5, 0.0, ExecutionTooSlow),  # it had most of its deadline to itself
        (9.0, 0.0, TooManyCalls),  # others took most of it
        (9.0, 9.5, ExecutionTooSlow),  # it would not be in time alone, either
    ],
)
def test_a_call_that_others_keep_from_an_answer_may_try_again(
    waited: float, expected: float, error: type[Exception]
) -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        nonlocal now
        loop = asyncio.get_running_loop()
        real = loop.call_later
        timers = []

        def call_later(seconds: float, function: Any, *given: Any) -> Any:
            if seconds != 10.0:
                return real(seconds, function, *given)
            timers.append((function, given))
            return real(60, lambda: None)

        loop.call_later = call_later  # type: ignore[assignment]
        (call,) = await queued(queue.execute("double", [1], 10.0))
        now += waited
        model.begun.clear()
        first_may_end, model.may_end = model.may_end, threading.Event()
        first_may_end.set()
        assert await asyncio.to_thread(model.begun.wait, 60)
        queue.times.row_seconds["double"] = expected
        now = 10.0
        ((at_deadline, given),) = timers
        at_deadline(*given)
        with pytest.raises(error):
            await call

    with_queue(test, clock=lambda: now)


def test_a_first_execution_is_answered_after_its_deadline_and_a_later_one_is_too_slow() -> None:
    may_end = threading.Event()
    held: list[list[int]] = []

    def slow(rows: list[int]) -> list[int]:
        held.append(rows)
        assert may_end.wait(60)
        return rows

    async def test() -> None:
        queue = RequestQueue({"slow": slow})
        worker = asyncio.create_task(queue.work())
        (first,) = await queued(queue.execute("slow", [1], 0.01))
        with pytest.raises(TimeoutError):  # its deadline has passed, and it waits
            await asyncio.wait_for(asyncio.shield(first), 0.1)
        may_end.set()
        assert await first == [1]
        may_end.clear()
        with pytest.raises(ExecutionTooSlow, match="longer than the deadline of the call"):
            await queue.execute("slow", [2], 0.01)
        may_end.set()
        assert await queue.execute("slow", [3]) == [3]
        assert queue.counts == QueueCounts(answered=2, late=1)
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker

    asyncio.run(test())


def test_a_request_whose_caller_has_gone_waits_no_longer() -> None:
    now = 0.0

    async def test(queue: RequestQueue, _model: HeldModel) -> None:
        queue.times.row_seconds["double"] = 1.0
        (call,) = await queued(queue.execute("double", [1, 2]))
        assert queue.expected_wait(now) == 2
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        assert queue.expected_wait(now) == 0

    with_queue(test, clock=lambda: now)


def test_the_cost_of_an_execution_is_told_from_that_of_its_rows() -> None:
    times = ExecutionTimes()
    times.note("a", 1, 1.1)
    assert times.expected("a", 64, 64) == pytest.approx(64 * 1.1), "Nothing tells them apart yet."
    for rows in (64, 1, 8, *[1] * 200):
        times.note("a", rows, 1 + 0.1 * rows)
    assert times.expected("a", 1, 64) == pytest.approx(1.1)
    assert times.expected("a", 64, 64) == pytest.approx(7.4)
    assert times.expected("a", 65, 64) == pytest.approx(8.5)


def test_the_cost_of_an_execution_is_shared_by_requests_that_wait() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        queue.times.execution_seconds["double"] = 1.0
        tasks = await queued(*(queue.execute("double", [row], 5) for row in range(1, 11)))
        model.may_end.set()
        assert await asyncio.gather(*tasks) == [[2 * row] for row in range(1, 11)]
        assert model.calls == [[0], list(range(1, 11))]

    with_queue(test, clock=lambda: now)


def test_the_only_request_is_executed_however_slow_its_model_was() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        (waits,) = await queued(queue.execute("double", [1], 10))
        queue.times.row_seconds["double"] = 100.0
        model.may_end.set()
        assert await waits == [2]

    with_queue(test, clock=lambda: now)


def test_a_request_that_is_late_anyway_closes_the_queue_to_no_other() -> None:
    now = 0.0

    async def test(queue: RequestQueue, model: HeldModel) -> None:
        (waits,) = await queued(queue.execute("double", [1] * 7, 60))
        queue.times.row_seconds["double"] = 10.0
        queue.times.row_seconds["fast"] = 1.0
        queue.models = {**queue.models, "fast": model}
        (fits,) = await queued(queue.execute("fast", [3], 5))
        model.may_end.set()
        assert await fits == [6]
        with suppress(TooManyCalls):
            await waits

    with_queue(test, clock=lambda: now)


def test_bytes_that_wait_are_limited() -> None:
    async def test(queue: RequestQueue, model: HeldModel) -> None:
        tasks = await queued(queue.execute("double", [1], sent_bytes=60))
        with pytest.raises(TooManyCalls, match="1 rows wait already, of 60 bytes"):
            await queue.execute("double", [2], sent_bytes=60)
        model.may_end.set()
        assert await tasks[0] == [2]

    with_queue(test, queued_bytes=100)


@pytest.mark.parametrize("error", [StopIteration, SystemExit, asyncio.CancelledError])
def test_what_no_future_holds_is_the_error_of_the_call(error: type[BaseException]) -> None:
    def raises(_rows: list[Any]) -> list[Any]:
        raise error

    async def test(queue: RequestQueue, held: HeldModel) -> None:
        queue.models = {**queue.models, "raises": raises}
        held.may_end.set()
        with pytest.raises(ModelFailed, match=error.__name__):
            await queue.execute("raises", [1])
        assert await queue.execute("double", [1]) == [2]

    with_queue(test)


@pytest.mark.parametrize("found", [{0: "no"}, {"no"}, "n"])
def test_results_are_a_list(found: Any) -> None:
    async def test(queue: RequestQueue, held: HeldModel) -> None:
        queue.models = {**queue.models, "other": lambda _rows: found}
        held.may_end.set()
        with pytest.raises(UnusableResult, match=f"returned {type(found).__name__} for rows"):
            await queue.execute("other", [1])

    with_queue(test)


def test_an_error_is_that_of_the_request_that_made_it() -> None:
    async def test(queue: RequestQueue, model: HeldModel) -> None:
        good, bad = await queued(queue.execute("double", [1]), queue.execute("double", [-1]))
        model.may_end.set()
        assert await good == [2]
        with pytest.raises(ValueError, match="a negative number"):
            await bad

    with_queue(test)


@pytest.mark.parametrize(
    ("model", "rows", "kind", "sentence"),
    [
        ("other", [1], NotFound, r"no model other\. One of: double, short"),
        ("double", [1] * 2000, TooLarge, "2000 rows are too many"),
        ("short", [1], UnusableResult, "returned 0 results for 1 rows"),
    ],
)
def test_what_is_refused(model: str, rows: list[int], kind: type[Exception], sentence: str) -> None:
    async def test(queue: RequestQueue, held: HeldModel) -> None:
        held.may_end.set()
        with pytest.raises(kind, match=sentence):
            await queue.execute(model, rows)

    with_queue(test)
