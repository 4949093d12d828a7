"""A bounded queue in front of models: batches, deadlines, and early refusal under overload.

One worker executes, as there is one lease. The order is that of ``schedule``: earliest deadline
first, by the same plan, which also decides what is admitted. The worker takes the request with the
earliest deadline, and with it those for the same model. A request is refused at once if the queue
is full, or if with it the plan has an answer after its deadline: its own, or that of a request
which would be in time without it. An answer that comes too late helps no caller, and makes the next
ones late too. A request that finds the queue idle is always executed, so an execution that was slow
once does not close a model: its expected seconds are measured anew. At its deadline a request that
waits is refused, as is one under overload; so is one that is executed beside rows of other calls,
or after most of its deadline, if it would be in time alone. One that is executed alone is told that
its model is too slow; an execution may hang. A model's first execution may import and compile; its
requests wait longer, by ``FIRST_SECONDS``.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final

from ...hub.errors import NotFound, TooLarge, TooManyCalls, Unavailable
from ...hub.messages import units
from ..execution.deadlines.plan import PlacedRun, TimedRequest, free_at, plan
from .execution_times import ExecutionTimes
from .model_results import ModelFailed, checked, raised

BATCH_ROWS: Final = 64
"""Most rows of one execution, unless a single request has more."""
QUEUED_ROWS: Final = 1024
"""Most rows that wait."""
QUEUED_BYTES: Final = 256 << 20
"""Most bytes, as they were sent, of the rows that wait."""
DEADLINE_SECONDS: Final = 10.0
FIRST_SECONDS: Final = 60.0
"""How long after its deadline a request in the first execution of its model may still wait."""
_SAFE: Final = 0.8
"""Part of a deadline within which an answer must be expected: other work on the machine delays."""

Model = Callable[[list[Any]], Sequence[Any]]
"""Takes rows; returns as many results."""


class ExecutionTooSlow(Unavailable):
    """The execution of a request took longer than its caller waits."""

    code = "execution_too_slow"
    http_status = 504


@dataclass(slots=True, kw_only=True)
class WaitingRows:
    """One request: rows for a model.

    Attributes:
        planned: what the plan takes it for; due before the deadline, by a margin.
        seconds: how long its caller waits.
        deadline: after which its caller has no use for an answer.
        at_once: nothing waited or was executed when it came.
        begun: since when it is executed; None while it waits, also for another part of its batch.
        rows_of_others: how many are executed with it.
        first: that is the first execution of its model.
    """

    model: str
    rows: list[Any]
    planned: TimedRequest
    seconds: float
    deadline: float
    done: asyncio.Future[list[Any]]
    sent_bytes: int = 0
    at_once: bool = False
    begun: float | None = None
    rows_of_others: int = 0
    first: bool = False

    @property
    def had_time(self) -> bool:
        """Whether it was executed without others for most of the time that its caller waits."""
        if self.begun is None or self.rows_of_others:
            return False
        return self.deadline - self.begun >= _SAFE * self.seconds


@dataclass(slots=True)
class QueueCounts:
    """How many requests had which end."""

    answered: int = 0
    refused: int = 0
    late: int = 0
    failed: int = 0


@dataclass(slots=True)
class RequestQueue:
    """Requests to models, executed in batches by one thread.

    Attributes:
        models: by name.
        batch_rows, queued_rows, queued_bytes: limits.
        clock: monotonic seconds.
        times: what executions are expected to take.
    """

    models: Mapping[str, Model]
    batch_rows: int = BATCH_ROWS
    queued_rows: int = QUEUED_ROWS
    queued_bytes: int = QUEUED_BYTES
    clock: Callable[[], float] = time.monotonic
    counts: QueueCounts = field(default_factory=QueueCounts)
    times: ExecutionTimes = field(default_factory=ExecutionTimes)
    _waiting: list[WaitingRows] = field(default_factory=list)
    """By deadline."""
    _submitted: int = 0
    _executed: set[str] = field(default_factory=set)
    _running: str = ""
    """The model that is executed."""
    _running_since: float = 0.0
    _begun: float = 0.0
    _expected: float = 0.0
    """Seconds of what is executed, from ``_begun``."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def execute(
        self,
        model: str,
        rows: list[Any],
        seconds: float = DEADLINE_SECONDS,
        *,
        sent_bytes: int = 0,
    ) -> list[Any]:
        """Return the results of rows.

        Args:
            seconds: how long the caller waits.
            sent_bytes: how many bytes the rows had when they were sent.

        Raises:
            NotFound: there is no such model.
            TooLarge: these are more rows than may ever wait.
            TooManyCalls: the queue is full, or others keep it from an answer in time.
            ExecutionTooSlow: its own execution takes longer than the caller waits.
            Exception: whatever the model raises on these rows.
        """
        if model not in self.models:
            known = ", ".join(list(self.models)[:10])
            raise NotFound(f"There is no model {model:.80}.", accepted=f"One of: {known}.")
        if len(rows) > self.queued_rows:
            raise TooLarge(
                f"{len(rows)} rows are too many for one request.",
                accepted=f"At most {self.queued_rows}.",
            )
        if not rows:
            return []
        now = self.clock()
        at_once = not self._running and not self._waiting
        self._submitted += 1
        planned = TimedRequest(
            # No later request comes before one that is executed at once.
            deadline=now if at_once else now + _SAFE * seconds,
            number=self._submitted,
            model=model,
            runs=len(rows),
        )
        if not at_once:
            self._admit(planned, sent_bytes, now)
        waiting = WaitingRows(
            model=model,
            rows=rows,
            planned=planned,
            seconds=seconds,
            deadline=now + seconds,
            done=asyncio.get_running_loop().create_future(),
            sent_bytes=sent_bytes,
            at_once=at_once,
        )
        insort(self._waiting, waiting, key=lambda each: each.planned)
        self._changed.set()
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(seconds, self._at_deadline, waiting)]
        timers += [loop.call_later(seconds + FIRST_SECONDS, self._refuse_late, waiting)]
        try:
            return await waiting.done
        finally:  # also if the caller has gone
            for timer in timers:
                timer.cancel()
            self._waiting = [each for each in self._waiting if each is not waiting]

    def _at_deadline(self, late: WaitingRows) -> None:
        if not late.first:
            self._refuse_late(late)

    def _refuse_late(self, late: WaitingRows) -> None:
        """Refuse a request that has no answer, whether it waits or is executed."""
        if late.done.done():
            return
        self.counts.late += 1
        late.done.set_exception(self._error_of_late(late))

    def _error_of_late(self, late: WaitingRows) -> ExecutionTooSlow | TooManyCalls:
        """Return whether the model is too slow for a call, or other calls are the reason."""
        alone = late.begun is not None and not late.rows_of_others
        if late.had_time or (alone and self._seconds([late]) >= _SAFE * late.seconds):
            return ExecutionTooSlow(
                f"The model takes longer than the deadline of the call{self._executing()}.",
                accepted="Send fewer rows, or a longer deadline.",
            )
        beside = ""
        if late.rows_of_others:
            beside = f" beside {units.count(late.rows_of_others, 'row')} of other calls"
        refused = TooManyCalls(
            f"Execution{beside} takes longer than expected{self._executing()}.",
            accepted="Try again, with a longer deadline.",
        )
        refused.seconds = max(1, round(self.expected_wait(self.clock())))
        return refused

    def running(self) -> tuple[str, float] | None:
        """Return the model that is executed now, and since how many seconds."""
        return (self._running, self.clock() - self._running_since) if self._running else None

    def _executing(self) -> str:
        running = self.running()
        return f"; executing {running[0]} since {running[1]:.3g} s" if running else ""

    def expected_wait(self, now: float) -> float:
        """Return the seconds until all that waits is executed, as far as models were timed."""
        return self._free_at(now) - now + self._seconds(self._waiting)

    def _free_at(self, now: float) -> float:
        return free_at(now, self._begun, self._expected)

    async def work(self) -> None:
        """Execute queued requests, until cancelled."""
        with closing(_ModelThread()) as thread:
            while True:
                batch = self._next_batch()
                if not batch:
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                self._running, self._running_since = batch[0].model, self.clock()
                try:
                    await self._execute_batch(thread, batch)
                finally:
                    self._running, self._expected = "", 0.0

    async def _execute_batch(self, thread: _ModelThread, batch: list[WaitingRows]) -> None:
        """Execute requests; after an error halves of them, as it may be that of one's rows."""
        name = batch[0].model
        for each in batch:
            each.first = name not in self._executed
        parts = [batch]
        while parts:
            part = parts.pop()
            rows = [row for each in part for row in each.rows]
            begun = self.clock()
            for each in part:
                each.begun, each.rows_of_others = begun, len(rows) - len(each.rows)
            self._begun = begun
            self._expected = self._seconds(part) + sum(map(self._seconds, parts))
            try:
                results = await thread.execute(self.models[name], rows)
            except Exception as error:  # what a model of the user raises
                if len(part) > 1:
                    for each in part:
                        each.begun, each.rows_of_others = None, 0
                    half = len(part) // 2
                    parts += [part[half:], part[:half]]
                    now = self.clock()
                    parts = [kept for each in parts if (kept := self._in_time(each, now))]
                    continue
                if not part[0].done.done():
                    self.counts.failed += 1
                    part[0].done.set_exception(error)
            else:
                if name in self._executed:  # else it also imported, compiled, chose
                    self.times.note(name, len(rows), self.clock() - begun)
                self._answer(part, results)
            finally:
                self._executed.add(name)

    def _admit(self, request: TimedRequest, size: int, now: float) -> None:
        """Refuse a request for which there is no space, or that makes an answer too late."""
        waiting = [each for each in self._waiting if not each.done.done()]
        queued = sum(each.planned.runs for each in waiting)
        queued_bytes = sum(each.sent_bytes for each in waiting)
        why = ""
        if queued + request.runs > self.queued_rows or queued_bytes + size > self.queued_bytes:
            why = f"{queued} rows wait already, of {queued_bytes} bytes"
        else:
            why = self._too_late(request, [each.planned for each in waiting], now)
        if not why:
            return
        self.counts.refused += 1
        refused = TooManyCalls(
            f"The model has too much to do: {why}{self._executing()}.",
            accepted="Try again later, or wait longer.",
        )
        refused.seconds = max(1, round(self.expected_wait(now)))
        raise refused

    def _too_late(self, request: TimedRequest, waiting: list[TimedRequest], now: float) -> str:
        """Return why a plan with a request misses a deadline that it affects; empty if none."""
        before = {run.request.number for run in self._plan(waiting, now) if run.in_time}
        for run in self._plan([*waiting, request], now):
            if run.in_time or not (run.request is request or run.request.number in before):
                continue
            if run.request is request:
                return (
                    f"an answer is expected in {run.ends - now:.2f} s, too late for "
                    f"{(request.deadline - now) / _SAFE:g} s"
                )
            return f"a request to {run.request.model} that waits already would be late"
        return ""

    def _plan(self, requests: list[TimedRequest], now: float) -> tuple[PlacedRun, ...]:
        """Return runs in which requests for one model share the cost of its executions."""
        rows: Counter[str] = Counter()
        for each in requests:
            rows[each.model] += each.runs
        return plan(
            requests,
            [self._free_at(now)],
            lambda model, _worker: (
                self.times.expected(model, rows[model], self.batch_rows) / rows[model]
            ),
        )

    def _next_batch(self) -> list[WaitingRows]:
        """Take the most urgent request, and those for its model that make no other one late."""
        now = self.clock()
        batch: list[WaitingRows] = []
        kept: list[WaitingRows] = []
        latest = float("inf")  # when the batch must end
        waiting = [each for each in self._waiting if not each.done.done()]
        if len(waiting) > 1:  # a single one delays no other, and is measured anew
            waiting = self._in_time(waiting, now)
        for each in waiting:
            if not batch:
                batch.append(each)
                latest = each.deadline
                continue
            joined = [*batch, each]
            if (
                each.model == batch[0].model
                and sum(len(member.rows) for member in joined) <= self.batch_rows
                and now + self._seconds(joined) <= min(latest, each.deadline)
            ):
                batch, latest = joined, min(latest, each.deadline)
            else:
                kept.append(each)
                latest = min(latest, each.deadline - self._seconds(kept))
        self._waiting = kept
        return batch

    def _in_time(self, requests: Iterable[WaitingRows], now: float) -> list[WaitingRows]:
        """Return the requests whose callers wait and can have an answer in time; refuse others."""
        kept = []
        for each in requests:
            if each.done.done():  # the caller has gone
                continue
            if each.at_once or each.first or now + self._seconds([each]) < each.deadline:
                kept.append(each)
                continue
            self._refuse_late(each)
        return kept

    def _seconds(self, requests: Iterable[WaitingRows]) -> float:
        """Return the expected seconds of executing requests."""
        rows: Counter[str] = Counter()
        for each in requests:
            rows[each.model] += len(each.rows)
        return sum(self.times.expected(*each, self.batch_rows) for each in rows.items())

    def _answer(self, batch: list[WaitingRows], results: list[Any]) -> None:
        at = 0
        for each in batch:
            if not each.done.done():
                each.done.set_result(results[at : at + len(each.rows)])
                self.counts.answered += 1
            at += len(each.rows)


class _ModelThread:
    """One thread that does not keep the process: a model may hang in it when the server ends."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="carrel-model", daemon=True).start()

    async def execute(self, model: Model, rows: list[Any]) -> list[Any]:
        future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = _results(model, rows)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(found)

        self._calls.put(call)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _results(model: Model, rows: list[Any]) -> list[Any]:
    try:
        return checked(model(rows), len(rows))
    except BaseException as error:
        unheld = StopIteration | concurrent.futures.CancelledError  # a future cannot hold them
        if isinstance(error, Exception) and not isinstance(error, unheld):
            raise
        raise ModelFailed(f"The model raised {raised(error)}") from error
