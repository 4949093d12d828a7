"""Choose the fastest way to execute something among those that give the result of plain execution.

1. The plain candidate executes the sample. Its errors are the caller's.
2. Each other candidate is built and executes the sample, while time is left and while it could
   still save what it takes to build. One that fails, or whose result differs, is dropped.
3. The rest are timed in turns, so that other work on the machine slows all of them alike.
4. The candidate with the least time over the expected number of calls is chosen, its build
   included; the first of those that are about as fast, and plain execution unless it is clearly
   faster.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

from ...hub.errors import InvalidInput

CALLS: Final = 1000
"""Expected number of calls over which the time of a build is spread, unless the caller says."""
SECONDS: Final = 60.0
"""Time for one choice, unless the caller says."""
COMPILATION_SECONDS: Final = 1.0
"""The least time that compilation takes; measured with an empty cache on two cores."""
_CLEARLY_FASTER: Final = 0.95
_ABOUT_AS_FAST: Final = 1.05
_ROUNDS: Final = 15
_FEWEST_ROUNDS: Final = 3
_SHORTEST_MEASUREMENT: Final = 0.002
_PART_FOR_TIMES: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCandidate:
    """One way to execute something.

    Attributes:
        name: such as ``plain`` or ``fused in groups of 10, compiled``.
        build: returns what executes a call; called once.
        build_seconds: the least time that building and a first call take, as far as known.
    """

    name: str
    build: Callable[[], Callable[..., Any]]
    build_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """What one candidate did on the sample.

    Attributes:
        seconds: of one call, median; NaN unless it was timed.
        build_seconds: of the build and the first call.
        reason: why it was not chosen; empty for the chosen one.
    """

    name: str
    seconds: float = math.nan
    build_seconds: float = 0.0
    reason: str = ""

    def cost(self, calls: int) -> float:
        """Return the seconds of a call with the build spread over so many calls."""
        return self.seconds + self.build_seconds / calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionChoice:
    """What was chosen for one sample, and why.

    Attributes:
        calls: over how many calls builds were spread.
        results: of all candidates; the plain one is the first.
    """

    chosen: str
    calls: int
    results: tuple[CandidateResult, ...]

    @property
    def speedup(self) -> float:
        """How many times faster a call is than by plain execution, on the sample."""
        by_name = {result.name: result.seconds for result in self.results}
        return by_name[self.results[0].name] / by_name[self.chosen]

    def __str__(self) -> str:
        lines = [f"chosen: {self.chosen}, {self.speedup:.2f} times as fast as plain execution"]
        for result in self.results:
            timed = (
                f"{result.seconds * 1000:.3f} ms a call"
                if math.isfinite(result.seconds)
                else "not timed"
            )
            built = f", {result.build_seconds:.1f} s to build" if result.build_seconds else ""
            reason = f": {result.reason}" if result.reason else ""
            lines.append(f"  {result.name}: {timed}{built}{reason}")
        return "\n".join(lines)


def _difference(plain: object, other: object) -> str:
    from .equality import difference  # noqa: PLC0415 # needs PyTorch, unlike this module

    return difference(plain, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSample:
    """How candidates are called, and what is compared.

    Attributes:
        call: calls a candidate's function on the user's sample.
        result: the same, and returns what is compared; ``call`` if that is its result.
        restore: puts state that a call changes back to what it was.
        difference: of the plain result and another one, as a sentence; empty where equal.
        agreed: the largest of a number among processes that choose together.
    """

    call: Callable[[Callable[..., Any]], object]
    result: Callable[[Callable[..., Any]], object] | None = None
    restore: Callable[[], None] = lambda: None
    difference: Callable[[Any, Any], str] = _difference
    agreed: Callable[[float], float] = float

    def since(self, begun: float) -> float:
        """Return the seconds since then."""
        return self.agreed(time.perf_counter() - begun)

    def first_result(self, function: Callable[..., Any]) -> object:
        self.restore()
        found = (self.result or self.call)(function)
        _wait_for_device()
        return found

    def seconds(self, function: Callable[..., Any], repeats: int = 1) -> float:
        """Return the seconds of a call, as the mean of so many."""
        self.restore()
        _wait_for_device()
        begun = time.perf_counter()
        for _ in range(repeats):
            self.call(function)
        _wait_for_device()
        return self.since(begun) / repeats


@dataclass(slots=True)
class _Contender:
    result: CandidateResult
    function: Callable[..., Any]
    first_seconds: float
    times: list[float] = field(default_factory=list)


def choose(
    candidates: Sequence[ExecutionCandidate],
    sample: ExecutionSample,
    *,
    calls: int = CALLS,
    seconds: float = SECONDS,
) -> tuple[Callable[..., Any], ExecutionChoice]:
    """Return the chosen function, and how it was chosen.

    The states of random number generators are put back afterwards.

    Args:
        candidates: plain execution first; then in the order in which they should be tried.
        calls: expected number of calls.
        seconds: no build begins later than this. One that has begun is not interrupted.

    Raises:
        Exception: whatever plain execution raises on the sample.
    """
    with without_random_numbers():
        return _choose(candidates, sample, calls=calls, seconds=seconds)


@contextmanager
def without_random_numbers() -> Iterator[None]:
    """Put the states of random number generators back at the end."""
    torch = _loaded_torch()
    if torch is None:
        yield
        return
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices):
        yield


def _choose(
    candidates: Sequence[ExecutionCandidate],
    sample: ExecutionSample,
    *,
    calls: int,
    seconds: float,
) -> tuple[Callable[..., Any], ExecutionChoice]:
    begun = time.perf_counter()
    plain, *others = candidates
    function = plain.build()
    expected = sample.first_result(function)
    # The first call allocates, too: the second one says what can be saved.
    first = sample.seconds(function)
    contenders = [_Contender(CandidateResult(name=plain.name), function, first)]
    lost: dict[str, CandidateResult] = {}
    for candidate in others:
        left = seconds * (1 - _PART_FOR_TIMES) - sample.since(begun)
        if reason := _not_worth_it(candidate, first * calls, left):
            lost[candidate.name] = CandidateResult(name=candidate.name, reason=reason)
            continue
        found = _built(candidate, sample, expected)
        if isinstance(found, CandidateResult):
            lost[candidate.name] = found
        else:
            contenders.append(found)
    if len(contenders) > 1:
        _time_in_turns(contenders, sample, begun, seconds)
    else:
        contenders[0].times.append(first)  # nothing is left to compare it with
    sample.restore()
    for each in contenders:
        each.result = replace(each.result, seconds=median(each.times))
    winner = _winner(contenders, calls)
    for each in contenders:
        if each is not winner:
            each.result = replace(each.result, reason=_reason(each.result, winner.result, calls))
    timed = {each.result.name: each.result for each in contenders}
    results = tuple(timed.get(each.name) or lost[each.name] for each in candidates)
    choice = ExecutionChoice(chosen=winner.result.name, calls=calls, results=results)
    return winner.function, choice


def _not_worth_it(candidate: ExecutionCandidate, plain_cost: float, left: float) -> str:
    if candidate.build_seconds > plain_cost:
        return (
            f"not tried: all expected calls take {plain_cost:.2g} s by plain execution, less time "
            "than the build"
        )
    if left <= candidate.build_seconds:
        return "not tried: the time for the choice was over; a larger seconds= gives it more"
    return ""


def _built(
    candidate: ExecutionCandidate, sample: ExecutionSample, expected: object
) -> _Contender | CandidateResult:
    """Build a candidate and compare its first result; return the reason where it is dropped."""
    name = candidate.name
    begun = time.perf_counter()
    try:
        function = candidate.build()
        found = sample.first_result(function)
        spent = sample.since(begun)
        if getattr(function, "graphs", None) == 0:  # a CountedCompilation
            return CandidateResult(
                name=name,
                build_seconds=spent,
                reason="dropped: the compiler found nothing to compile",
            )
        other = sample.difference(expected, found)
        if sample.agreed(bool(other)):
            other = other or "the result differs in another process"
            return CandidateResult(name=name, build_seconds=spent, reason=f"dropped: {other}")
        again = sample.seconds(function)
    except Exception as error:  # compilers raise errors of many kinds
        spent = time.perf_counter() - begun
        return CandidateResult(name=name, build_seconds=spent, reason=failure(error))
    built = max(0.0, spent - again) if candidate.build_seconds else 0.0
    return _Contender(CandidateResult(name=name, build_seconds=built), function, again)


def _wait_for_device() -> None:
    torch = _loaded_torch()
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _loaded_torch() -> Any:
    """Return PyTorch if this process uses it: a shelf of pipelines needs none."""
    return sys.modules.get("torch")


def check_callable(function: object) -> None:
    """Raise InvalidInput for what cannot be called."""
    if not callable(function):
        raise InvalidInput(
            f"{type(function).__name__} cannot be called.", accepted="A function or a module."
        )


def failure(error: BaseException) -> str:
    """Return an error of a candidate as a reason: its kind and its first line."""
    line = next(iter(str(error).strip().split("\n")), "")
    return f"failed: {type(error).__name__}: {line}".removesuffix(": ")


def _time_in_turns(
    contenders: Sequence[_Contender], sample: ExecutionSample, begun: float, seconds: float
) -> None:
    for number in range(_ROUNDS):
        if number >= _FEWEST_ROUNDS and sample.since(begun) > seconds:
            return
        for each in contenders:
            repeats = max(1, int(_SHORTEST_MEASUREMENT / each.first_seconds))
            each.times.append(sample.seconds(each.function, repeats))


def _winner(contenders: Sequence[_Contender], calls: int) -> _Contender:
    plain = contenders[0]
    least = min(each.result.cost(calls) for each in contenders)
    # Candidates are in the order of what they need: small groups before large ones.
    best = next(each for each in contenders if each.result.cost(calls) <= _ABOUT_AS_FAST * least)
    clearly = best.result.cost(calls) <= _CLEARLY_FASTER * plain.result.cost(calls)
    return best if clearly else plain


def _reason(result: CandidateResult, winner: CandidateResult, calls: int) -> str:
    if result.cost(calls) <= winner.cost(calls):
        return "as fast as the chosen one, or not clearly faster"
    if result.seconds <= winner.seconds and result.build_seconds:
        return f"faster, but its build takes more than it saves in {calls:,} calls"
    times = result.cost(calls) / winner.cost(calls)
    return f"takes {times:.2f} times as long as the chosen one" + (
        ", builds included" if result.build_seconds or winner.build_seconds else ""
    )
