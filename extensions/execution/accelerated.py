"""Compile imperative functions under guard: ``execution.accelerate``."""

from __future__ import annotations

import functools
import inspect
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import torch

from ...hub.attempts.compilations import CompilationObstacle
from .choice import (
    CALLS,
    COMPILATION_SECONDS,
    SECONDS,
    ExecutionCandidate,
    ExecutionChoice,
    ExecutionSample,
    check_callable,
    choose,
    failure,
)
from .compilation import CountedCompilation
from .compile_report import obstacle_of_break, obstacle_of_effect, obstacle_text, record
from .equality import difference
from .explanation import ExecutionExplanation
from .purity import CONTAINERS, FunctionPurity, analyse, hook_tables
from .purity.tensor_snapshot import TensorSnapshot

CHECKED_CALLS: Final = 3
"""Calls after the choice that are all compared with plain execution."""
MEAN_GAP: Final = 200
"""Calls between two later comparisons, on average; more where a call is short."""
LARGEST_MEAN_GAP: Final = 2_000
_COMPARED_SHARE: Final = 0.02
"""Later comparisons take about this part of the time of the calls between them."""
MOST_KINDS: Final = 8
"""Kinds of arguments for which a choice is made."""
MOST_RECOMPILATIONS: Final = 5
"""The compiler itself gives up after eight, with only a line in its log."""
_TIMES_TO_JUDGE: Final = 5
_SLOWER: Final = 1.05
_LARGEST_SHARE: Final = 0.01
_NUMBERS: Final = (int, float, complex)
_TEXTS: Final = (bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


def accelerate(
    function: Callable[..., Any],
    *,
    classifier: bool = False,
    calls: int = CALLS,
    seconds: float = SECONDS,
) -> AcceleratedFunction:
    """Return a function that does the same, compiled where that is faster; also a decorator.

    Branches on data, changing types and lists keep their meaning: what the compiler cannot take
    stays Python. The first call for arguments of one kind is executed plainly, and chooses. The
    next three calls and a sample of later ones are compared with plain execution, whose result
    they return; at the first difference the function is executed plainly from then on, with a
    warning.

    A comparison executes the function twice. So only a function whose source shows no side effect
    is compiled: one that prints, changes arguments, attributes or global variables, draws random
    numbers or calls unknown code is executed plainly, once a call. ``explain`` names its lines.
    Second derivatives through the result of a compiled function raise an error of PyTorch.

    Args:
        classifier: results are scores of classes along the last dimension; labels must agree.
        calls: how often it will probably be called with arguments of one kind.
        seconds: no compilation begins later than this in a first call.

    Raises:
        InvalidInput: it cannot be called.
    """
    check_callable(function)
    return AcceleratedFunction(function, classifier=classifier, calls=calls, seconds=seconds)


@dataclass(slots=True)
class _ArgumentKind:
    """What was chosen for arguments of one kind.

    Attributes:
        function: None for plain execution.
        graphs: that were compiled when it was looked at last.
        next_check: at which call the result is compared again.
        times: of the chosen function, as parts of the time of plain execution.
    """

    function: Callable[..., Any] | None = None
    compilation: CountedCompilation | None = None
    graphs: int = 0
    recompilations: int = 0
    calls: int = 0
    next_check: int = 1
    times: list[float] = field(default_factory=list)


class AcceleratedFunction:
    """A function that is compiled under guard; see ``accelerate``."""

    def __init__(
        self, function: Callable[..., Any], *, classifier: bool, calls: int, seconds: float
    ) -> None:
        self._function = function
        self._difference = functools.partial(difference, labels=classifier)
        self._calls = calls
        self._seconds = seconds
        self._kinds: dict[Any, _ArgumentKind] = {}
        self._choices: dict[str, ExecutionChoice] = {}
        self._notes: list[str] = []
        self._off = False
        # Not the numbers of the user's own generators.
        self._gaps = random.Random(0)  # noqa: S311
        self._obstacles: list[CompilationObstacle] = []
        self._hooks: list[Any] = []
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._off or torch.compiler.is_compiling():
            return self._function(*args, **kwargs)
        key = _signature(args, kwargs)
        kind = self._kinds.get(key)
        if kind is None:
            return self._first_call(key, args, kwargs)
        chosen = kind.function
        if chosen is None:
            return self._function(*args, **kwargs)
        kind.calls += 1
        if any(self._hooks):
            # What was compiled does not call hooks that were registered later.
            self._keep_effects(self._analyse(args, kwargs))
            return self._function(*args, **kwargs)
        if kind.calls >= kind.next_check:
            return self._checked(kind, args, kwargs)
        try:
            found = chosen(*args, **kwargs)
        except Exception as error:  # compilers raise errors of many kinds
            purity = self._analyse(args, kwargs)
            if purity.effects:
                # A global name has another value now: what was done cannot be done again.
                self._keep_effects(purity)
                raise
            found = self._function(*args, **kwargs)  # may raise the caller's own error
            self._switch_off(f"the compiled function {failure(error)}")
        self._count_graphs(kind)
        return found

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def explanation(self) -> ExecutionExplanation:
        return ExecutionExplanation(choices=self._choices, notes=tuple(self._notes))

    # -- first call ---------------------------------------------------------------------------

    def _first_call(self, key: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(key, _NoKind):
            self._note(f"Executed plainly where {key.reason}.")
            return self._function(*args, **kwargs)
        if len(self._kinds) >= MOST_KINDS:
            self._note(
                f"Executed plainly for further kinds of arguments: a choice was made for "
                f"{MOST_KINDS}. Pass tensors of few shapes."
            )
            return self._function(*args, **kwargs)
        purity = self._analyse(args, kwargs)
        if purity.effects:
            self._keep_effects(purity)
            return self._function(*args, **kwargs)
        modules = (each for root in purity.modules.values() for each in root.modules())
        self._hooks = hook_tables(modules)
        plain, _, reason = self._plainly(purity, args, kwargs)
        kind = self._kinds[key] = _ArgumentKind()
        if reason:
            self._switch_off(reason, warn=False)
        else:
            try:
                choice = self._choose(kind, key, _trained(purity, args, kwargs), args, kwargs)
            except Exception as error:  # results that cannot be compared
                self._switch_off(f"the choice {failure(error)}", warn=False)
                return plain
            # The first call is slower than later ones: it allocates.
            self._check_share(kind, key, choice.results[0].seconds, args, kwargs)
        return plain

    def _analyse(self, args: Any, kwargs: Any) -> FunctionPurity:
        return analyse(self._function, _immutable(self._function, args, kwargs))

    def _plainly(self, purity: FunctionPurity, args: Any, kwargs: Any) -> tuple[Any, float, str]:
        """Return the result of the function, its seconds, and what it has changed after all."""
        before = TensorSnapshot(
            purity.modules.values(),
            [*purity.tensors.values(), *_tensors((args, kwargs))],
            versions=True,
        )
        numbers = torch.get_rng_state()
        begun = time.perf_counter()
        found = self._function(*args, **kwargs)
        seconds = time.perf_counter() - begun
        if not before.unchanged():
            return found, seconds, "a call changes a tensor"
        if not torch.equal(numbers, torch.get_rng_state()):
            return found, seconds, "a call draws random numbers"
        return found, seconds, ""

    def _choose(
        self, kind: _ArgumentKind, key: Any, trained: list[torch.Tensor], args: Any, kwargs: Any
    ) -> ExecutionChoice:
        function = self._function
        compilation: list[CountedCompilation] = []

        def compiled() -> CountedCompilation:
            compilation.append(CountedCompilation(function, fullgraph=False))
            return compilation[0]

        def call(candidate: Callable[..., Any]) -> object:
            if candidate is not function:
                _signature(args, kwargs)
            return _with_gradients(candidate(*args, **kwargs), trained)

        chosen, choice = choose(
            [
                ExecutionCandidate(name="plain", build=lambda: function),
                ExecutionCandidate(
                    name="compiled", build=compiled, build_seconds=COMPILATION_SECONDS
                ),
            ],
            ExecutionSample(
                call=call,
                result=lambda candidate: _observed(
                    candidate(*args, **kwargs), trained, args, kwargs
                ),
                difference=self._difference,
            ),
            calls=self._calls,
            seconds=self._seconds,
        )
        self._choices[_text_of(key)] = choice
        self._keep_breaks(compilation)
        if compilation and chosen is compilation[0]:
            kind.function, kind.compilation = chosen, compilation[0]
            kind.graphs = compilation[0].graphs
            self._record(f"Compiled: {choice.speedup:.1f} times as fast on its first arguments.")
        else:
            reason = choice.results[-1].reason
            self._record(f"Executed plainly. The compiled function: {reason}.")
        return choice

    def _keep_breaks(self, compilations: Sequence[CountedCompilation]) -> None:
        for each in compilations:
            for found in each.breaks:
                obstacle = obstacle_of_break(found)
                if obstacle not in self._obstacles:
                    self._obstacles.append(obstacle)
                    self._note(obstacle_text(obstacle))

    def _record(self, outcome: str) -> None:
        record(self._function, outcome, self._obstacles)

    def _check_share(
        self, kind: _ArgumentKind, key: Any, seconds: float, args: Any, kwargs: Any
    ) -> None:
        """Stop to look at arguments where nothing was gained and looking at them takes long.

        Args:
            seconds: of plain execution, as the choice measured it.
        """
        begun = time.perf_counter()
        _signature(args, kwargs)
        if kind.function is None and time.perf_counter() - begun > _LARGEST_SHARE * seconds:
            self._switch_off(
                f"a call for {_text_of(key)} is so short that the check of its arguments would "
                "take more than a hundredth of its time",
                warn=False,
            )

    # -- later calls --------------------------------------------------------------------------

    def _checked(self, kind: _ArgumentKind, args: Any, kwargs: Any) -> Any:
        """Execute plainly and as chosen; compare both, and return the plain result."""
        chosen, compilation = kind.function, kind.compilation
        assert chosen is not None
        assert compilation is not None
        started = time.perf_counter()
        kind.next_check = kind.calls + self._gap(kind, MEAN_GAP)
        purity = self._analyse(args, kwargs)
        if purity.effects:
            # A global name has another value now.
            self._keep_effects(purity)
            return self._function(*args, **kwargs)
        plain, seconds, reason = self._plainly(purity, args, kwargs)
        if reason:
            self._switch_off(reason)
            return plain
        trained = _trained(purity, args, kwargs)
        try:
            begun = time.perf_counter()
            _signature(args, kwargs)
            found = chosen(*args, **kwargs)
            taken = time.perf_counter() - begun
            other = self._difference(
                _observed(plain, trained, args, kwargs), _observed(found, trained, args, kwargs)
            )
        except Exception as error:  # compilers raise errors of many kinds
            other = f"the compiled function {failure(error)}"
        if other:
            self._switch_off(f"at call {kind.calls} after the choice {other}")
            return plain
        if compilation.graphs == kind.graphs:
            kind.times = [*kind.times, taken / seconds][-_TIMES_TO_JUDGE:]
            if len(kind.times) == _TIMES_TO_JUDGE and median(kind.times) > _SLOWER:
                kind.function = None
                self._note("Executed plainly: the compiled function is no longer faster.")
        self._count_graphs(kind)
        worth = (time.perf_counter() - started) / max(_COMPARED_SHARE * seconds, 1e-9)
        mean = round(min(max(MEAN_GAP, worth), LARGEST_MEAN_GAP))
        kind.next_check = kind.calls + self._gap(kind, mean)
        return plain

    def _gap(self, kind: _ArgumentKind, mean: int) -> int:
        if kind.calls < CHECKED_CALLS:
            return 1
        return self._gaps.randint(mean // 2, 3 * mean // 2)

    def _count_graphs(self, kind: _ArgumentKind) -> None:
        compilation = kind.compilation
        if compilation is None or compilation.graphs == kind.graphs:
            return
        kind.graphs = compilation.graphs
        kind.recompilations += 1
        self._keep_breaks([compilation])
        if kind.recompilations > MOST_RECOMPILATIONS:
            kind.function = None
            self._note(
                f"Executed plainly: {kind.recompilations} later calls were compiled again, as "
                "types, lengths of lists or global variables change too often."
            )

    def _keep_effects(self, purity: FunctionPurity) -> None:
        self._off = True
        sentence = "Executed plainly: it may have side effects, which a comparison would repeat."
        self._note(sentence)
        self._obstacles = [obstacle_of_effect(effect) for effect in purity.effects]
        for obstacle in self._obstacles:
            self._note(f"  {obstacle_text(obstacle)}")
        self._record(sentence)

    def _switch_off(self, reason: str, *, warn: bool = True) -> None:
        self._off = True
        sentence = f"Executed plainly from now on: {reason}."
        self._note(sentence)
        self._record(sentence)
        if warn:
            name = getattr(self._function, "__name__", type(self._function).__name__)
            warnings.warn(f"accelerate({name}): {sentence}", stacklevel=4)

    def _note(self, sentence: str) -> None:
        if sentence not in self._notes:
            self._notes.append(sentence)


# -- arguments and results -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _NoKind:
    """Arguments that are not compiled, and why."""

    reason: str


def _signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the kind of the arguments: what a choice is made for."""
    try:
        found = [_kind(arg) for arg in args]
        if kwargs:
            found += [(name, _kind(value)) for name, value in kwargs.items()]
    except _NotPlain as error:
        return _NoKind(str(error))
    found.append(torch.is_grad_enabled())
    if torch.is_inference_mode_enabled():
        found.append("inference")
    return tuple(found)


class _NotPlain(Exception):
    """An argument of a kind whose operators may run any code."""


def _kind(value: Any) -> Any:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        if value.layout is not torch.strided:
            raise _NotPlain("an argument is a sparse tensor")
        if value._backward_hooks or torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise _NotPlain("an argument is a tensor with hooks, or of torch.func")
        return (value.shape, value.dtype, value.device, value.requires_grad, kind)
    if kind in _NUMBERS:
        return kind
    if kind in _TEXTS:
        return value
    if kind is list or kind is tuple:
        return (kind, *map(_kind, value))
    if kind is dict:
        return (dict, *((_kind(name), name, _kind(each)) for name, each in value.items()))
    raise _NotPlain(f"an argument is {kind.__name__}")


def _immutable(function: Callable[..., Any], args: Any, kwargs: Any) -> frozenset[str]:
    """Return the names of parameters whose values cannot change."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return frozenset()
    bound.apply_defaults()
    plain = (*_NUMBERS, *_TEXTS)
    return frozenset(name for name, value in bound.arguments.items() if type(value) in plain)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, CONTAINERS):
        for each in value:
            yield from _tensors(each)


def _trained(purity: FunctionPurity, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Return the tensors whose gradients are compared."""
    if not torch.is_grad_enabled():
        return []
    every = {id(each): each for each in (*_tensors((args, kwargs)), *purity.tensors.values())}
    return [each for each in every.values() if each.requires_grad]


def _with_gradients(results: Any, trained: list[torch.Tensor]) -> tuple[Any, Any]:
    """Return results, and gradients of a weighted sum of their elements."""
    outputs = [each for each in _tensors(results) if each.requires_grad] if trained else []
    if not outputs:
        return results, ()
    weights = [
        torch.linspace(0.5, 1.5, each.numel(), dtype=each.dtype, device=each.device).view_as(each)
        for each in outputs
    ]
    # The caller may need the graph again.
    found = torch.autograd.grad(outputs, trained, weights, retain_graph=True, allow_unused=True)
    return results, found


def _observed(results: Any, trained: list[torch.Tensor], args: Any, kwargs: Any) -> Any:
    """Return everything about results that a caller can see: values, gradients, and what shares
    memory with what."""
    known = list(_tensors((args, kwargs)))
    tensors = list(_tensors(results))
    first: dict[int, int] = {}
    shared = [
        first.setdefault(each.untyped_storage().data_ptr(), len(first))
        for each in (*known, *tensors)
        if each.numel()
    ]
    same = [next((i for i, own in enumerate(known) if own is each), -1) for each in tensors]
    strides = [_strides(each) for each in tensors]
    grads = [each.requires_grad for each in tensors]
    return *_with_gradients(results, trained), shared, same, strides, grads


def _strides(tensor: torch.Tensor) -> list[int]:
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def _text_of(key: Any) -> str:
    parts = []
    for each in key[:-1] if isinstance(key[-1], bool) else key[:-2]:
        if isinstance(each, tuple) and each and isinstance(each[0], torch.Size):
            parts.append(" by ".join(map(str, each[0])) or "a number")
        elif isinstance(each, type):
            parts.append(each.__name__)
        else:
            parts.append(str(each)[:40])
    return ", ".join(parts) or "no arguments"
