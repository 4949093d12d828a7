"""Execute requests to several models on several accelerators, each before its deadline.

One thread a worker; ``plan`` says what is admitted and what comes next. Where the workers here
cannot keep all deadlines, a device elsewhere takes part, if there is one. A request that would make
one late nevertheless is refused at once: late answers are of no use, and work on them makes others
late.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from numbers import Real
from types import TracebackType
from typing import Any, Final, Self, TypeGuard

from ....hub.errors import InvalidInput, Unavailable
from ....hub.messages import units
from .cost_table import Clock, CostTable
from .models import CPU, Execute
from .plan import PlacedRun, TimedRequest, all_in_time, free_at, plan

OFFLOADED: Final = "offloaded"
_LOOK_AGAIN_SECONDS: Final = 0.01
_PLACES: Final = {CPU: "on a CPU worker", OFFLOADED: "on another device, the way there included"}
_COUNTED: Final = {
    "in time": "answered in time",
    "late": "answered late",
    "missed": "not executed, as too late",
    "failed": "raised an error",
    OFFLOADED: "executed on another device",
}
"""What the counts mean, in the order in which they are told."""


def is_seconds(given: object) -> TypeGuard[float]:
    """Whether a value is a number of seconds, infinite ones included."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return False
    return not math.isnan(float(given))


class DeadlineMissed(Unavailable):
    """A request cannot be answered before its deadline, and is not executed."""

    code = "deadline_missed"


@dataclass(slots=True)
class _Waiting:
    request: TimedRequest
    inputs: Any
    future: Future[Any]


@dataclass(slots=True)
class DeadlineWorker:
    """What executes one request at a time.

    Attributes:
        kind: such as ``cpu`` or ``cuda:0``, or ``OFFLOADED``.
        name: as shown to people.
        models: executes each model there.
        begun: when its run began, by the clock of the scheduler.
        expected: seconds of its run; 0 while it has none.
    """

    kind: str
    name: str
    models: Mapping[str, Execute]
    begun: float = 0.0
    expected: float = 0.0

    def free_at(self, now: float) -> float:
        """When it will have ended what it executes."""
        return free_at(now, self.begun, self.expected)


class DeadlineScheduler:
    """Executes requests before their deadlines. Use it in a ``with``."""

    def __init__(
        self,
        workers: Sequence[DeadlineWorker],
        deadlines: Mapping[str, float],
        costs: CostTable,
        *,
        clock: Clock,
    ) -> None:
        self._workers = workers
        self._deadlines = deadlines
        self._costs = costs
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[int, _Waiting] = {}
        self._missed: list[tuple[Future[Any], DeadlineMissed]] = []
        self._counts: Counter[str] = Counter()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=each.name, daemon=True)
            for number, each in enumerate(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, model: str, inputs: Any, *, within: float | None = None) -> Future[Any]:
        """Execute a model before its deadline.

        Args:
            within: seconds from now, in place of the deadline of the model.

        Returns:
            a future with the outputs of the model, or with its error; ``DeadlineMissed`` if it
            was refused, or if its time was over before it began.

        Raises:
            InvalidInput: there is no such model, or the time is not a number.
        """
        if within is not None and not is_seconds(within):
            raise InvalidInput(
                f"{within!r:.40} is not a time.", accepted="Seconds from now, such as 0.05."
            )
        if model not in self._deadlines:
            raise InvalidInput(
                f"There is no model {model!r}.", accepted=", ".join(sorted(self._deadlines))
            )
        future: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise InvalidInput("This scheduler is closed.", accepted="Make a new one.")
            now = self._clock()
            self._drop(now)
            seconds = self._deadlines[model] if within is None else within
            number = self._counts["submitted"]
            self._counts["submitted"] += 1
            request = TimedRequest(deadline=now + seconds, number=number, model=model)
            self._waiting[number] = _Waiting(request, inputs, future)
            self._admit(request, now)
            self._changed.notify_all()
        self._tell_missed()
        return future

    def __call__(self, model: str, inputs: Any) -> Any:
        """Return the outputs of a model. Raises as ``submit``, and what the future holds."""
        return self.submit(model, inputs).result()

    def counts(self) -> Mapping[str, int]:
        """Return how many requests were submitted, in time, late, missed, offloaded and failed.

        Missed ones were not executed.
        """
        with self._changed:
            return dict(self._counts)

    def told(self) -> tuple[str, ...]:
        """Return sentences about workers, times and counts."""
        lines = []
        for model, deadline in self._deadlines.items():
            costs = {each.kind: self._costs.of_kind(model, each.kind) for each in self._workers}
            shown = ", ".join(
                f"{1000 * cost:.2f} ms {_PLACES.get(kind, f'on {kind}')}"
                for kind, cost in costs.items()
            )
            lines.append(
                f"{model} must answer within {1000 * deadline:.1f} ms; 9 of 10 runs take at most "
                f"{shown}."
            )
        workers = ", ".join(each.name for each in self._workers)
        first = f"Requests are executed by earliest deadline on: {workers}."
        return (first, *lines, self._counted())

    def _counted(self) -> str:
        counts = self.counts()
        if not counts:
            return "There were no requests yet."
        text = f"Of {units.count(counts['submitted'], 'request')}:"
        told = (f" {counts[kind]} {words}" for kind, words in _COUNTED.items() if kind in counts)
        return f"{text}{','.join(told)}." if len(counts) > 1 else f"{text} none has ended."

    def close(self) -> None:
        """Wait for running requests; queued ones are cancelled."""
        with self._changed:
            self._closed = True
            left = list(self._waiting.values())
            self._waiting.clear()
            self._changed.notify_all()
        for each in left:
            each.future.cancel()
        self._tell_missed()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _plan(self, now: float, without: int | None = None) -> tuple[PlacedRun, ...]:
        waiting = [each.request for each in self._waiting.values()]
        requests = [each for each in waiting if each.number != without]
        free = [each.free_at(now) for each in self._workers]
        here = [
            math.inf if each.kind == OFFLOADED else at
            for each, at in zip(self._workers, free, strict=True)
        ]
        runs = plan(requests, here, self._costs)
        return runs if all_in_time(runs) else plan(requests, free, self._costs)

    def _admit(self, request: TimedRequest, now: float) -> None:
        """Refuse a new request that would be late, or that would make one late."""
        runs = self._plan(now)
        # A run on an idle worker delays no request, and corrects the time that is expected.
        if all_in_time(runs) or (len(runs) == 1 and runs[0].begins <= now):
            return
        before = {run.request: run.in_time for run in self._plan(now, without=request.number)}
        late = next(
            (run for run in runs if not run.in_time and before.get(run.request, True)), None
        )
        if late is None:
            return
        milliseconds = 1000 * (late.ends - late.request.deadline)
        which = "It" if late.request == request else f"A request to {late.request.model}"
        waiting = units.count(len(runs) - 1, "other request")
        self._miss(
            request.number,
            f"{which} would end {milliseconds:.1f} ms late; {waiting} "
            f"{'waits' if len(runs) == 2 else 'wait'}.",  # noqa: PLR2004 # one other
        )

    def _miss(self, number: int, why: str) -> None:
        missed = self._waiting.pop(number)
        if not missed.future.set_running_or_notify_cancel():
            return
        self._counts["missed"] += 1
        error = DeadlineMissed(
            f"{missed.request.model} cannot be executed before its deadline. {why}",
            accepted="Allow more time, ask less often, or add an accelerator.",
        )
        self._missed.append((missed.future, error))

    def _tell_missed(self) -> None:
        """Tell those who wait; without the lock, as they may submit again at once."""
        with self._changed:
            missed, self._missed = self._missed, []
        for future, error in missed:
            future.set_exception(error)

    def _work(self, number: int) -> None:
        worker = self._workers[number]
        while (next_one := self._next(number)) is not None:
            model = next_one.request.model
            self._execute(next_one, worker.kind, worker.models[model])
            with self._changed:
                worker.expected = 0.0
                self._changed.notify_all()

    def _next(self, number: int) -> _Waiting | None:
        """Wait for the next request of a worker; None when the scheduler is closed."""
        while True:
            with self._changed:
                if self._closed:
                    return None
                found = self._pick(number)
                if found is None and not self._missed:
                    # The plan may move when a run takes longer than expected.
                    self._changed.wait(_LOOK_AGAIN_SECONDS if self._waiting else None)
            self._tell_missed()
            if found is not None:
                return found

    def _pick(self, number: int) -> _Waiting | None:
        now = self._clock()
        self._drop(now)
        run = next((run for run in self._plan(now) if run.worker == number), None)
        if run is None:
            return None
        worker = self._workers[number]
        worker.begun, worker.expected = now, run.ends - run.begins
        return self._waiting.pop(run.request.number)

    def _drop(self, now: float) -> None:
        """Drop what was cancelled, and what cannot be in time any more."""
        for number, each in list(self._waiting.items()):
            if each.future.cancelled():
                del self._waiting[number]
            elif each.request.deadline <= now:
                self._miss(
                    number,
                    "Its deadline passed before it was executed.",
                )

    def _execute(self, waiting: _Waiting, kind: str, execute: Execute) -> None:
        if not waiting.future.set_running_or_notify_cancel():
            return
        begun = self._clock()
        try:
            outputs = execute(waiting.inputs)
        except Exception as error:
            self._count("failed")
            waiting.future.set_exception(error)
            return
        ended = self._clock()
        if kind == OFFLOADED:
            self._count(OFFLOADED)
        self._costs.add(waiting.request.model, kind, ended - begun)
        self._count("in time" if ended <= waiting.request.deadline else "late")
        waiting.future.set_result(outputs)

    def _count(self, what: str) -> None:
        with self._changed:
            self._counts[what] += 1
