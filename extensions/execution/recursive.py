"""Execute a recursive function over trees as batches of nodes: ``carrel.execution.recursive``."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput
from .choice import (
    CALLS,
    SECONDS,
    ExecutionCandidate,
    ExecutionChoice,
    ExecutionSample,
    check_callable,
    choose,
    failure,
)
from .deferred_calls import NotBatchable, Recursion, UsesCaller, recorded_modules
from .explanation import ExecutionExplanation

DEEPEST: Final = 30_000
"""Most calls in each other."""
_FRAMES_OF_A_CALL: Final = 8
_AUTOCAST_DEVICES: Final = ("cpu", "cuda", "mps", "xpu")
_STACK_BYTES: Final = 1 << 30
"""Address space of the stack of a deep recursion; memory is used as far as it goes."""


def recursive(function: Callable[..., Any]) -> RecursiveFunction:
    """Batch the nodes of trees in a recursive function.

    The function is plain Python; it calls itself by its name, or as a method. Its ``map(trees)``
    equals ``[function(tree) for tree in trees]`` within the tolerance of the dtype, gradients
    included. Modules that it calls with tensors are executed once for all nodes at which their
    arguments are known; they must be pure, without hooks, and work on one node.

    The first call for a number of trees compares and times both ways; a function that needs the
    value of a tensor to go on recurses plainly.
    """
    return RecursiveFunction(function)


class RecursiveFunction:
    """A function made by ``recursive``.

    Raises, when it is called:
        InvalidInput: a node contains itself, or the recursion is deeper than 30,000 calls.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable(function)
        functools.update_wrapper(self, function)
        self._function = function
        self._chosen: dict[Any, Callable[[Sequence[tuple[Any, ...]]], list[Any]]] = {}
        self._choices: dict[str, ExecutionChoice] = {}
        self._notes: dict[str, None] = {}
        self._active = threading.local()
        self._uses_caller = False

    def __call__(self, *args: Any) -> Any:
        recursion: Recursion | None = getattr(self._active, "recursion", None)
        if recursion is None:
            return self._execute([args])[0]
        if recursion.running is not None:
            return self._find_cycle(recursion.running, args)
        recursion.depth += 1
        found = self._function(*args)
        recursion.depth -= 1
        return found

    def _find_cycle(self, running: set[tuple[int, ...]], args: tuple[Any, ...]) -> Any:
        call = tuple(map(id, args))
        if call in running:
            raise InvalidInput(
                f"A node of the tree contains itself ({type(args[-1]).__name__}).",
                accepted="A tree, in which a recursion ends.",
            )
        running.add(call)
        self._active.recursion.depth = len(running)
        found = self._function(*args)
        running.remove(call)
        self._active.recursion.depth = len(running)
        return found

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else _BoundRecursion(self, owner)

    def map(self, trees: Iterable[Any], *more: Any) -> list[Any]:
        """Call the function for each tree, with the same further arguments."""
        calls = [(tree, *more) for tree in trees]
        return self._execute(calls) if calls else []

    def explanation(self) -> ExecutionExplanation:
        return ExecutionExplanation(choices=self._choices, notes=tuple(self._notes))

    def _execute(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        size = len(calls).bit_length()
        key = (size, torch.is_grad_enabled())
        if key not in self._chosen:
            self._chosen[key] = self._choose(calls)
        function = self._chosen[key]
        if function == self.plainly:
            return self.plainly(calls)
        try:
            return function(calls)
        except Exception as error:  # plain execution raises the caller's own errors
            found = self.plainly(calls)
            self._notes[f"Executed plainly: {_reason(error)}."] = None
            return found

    def _choose(self, calls: Sequence[tuple[Any, ...]]) -> Callable[..., list[Any]]:
        many = f"{1 << len(calls).bit_length() - 1} trees or more" if calls[1:] else "one tree"
        with_gradients = torch.is_grad_enabled()
        chosen, choice = choose(
            [
                ExecutionCandidate(name="plain", build=lambda: self.plainly),
                ExecutionCandidate(name="batches of nodes", build=lambda: self.in_batches),
            ],
            ExecutionSample(call=lambda function: _with_gradients(function(calls))),
            calls=CALLS,
            seconds=SECONDS,
        )
        self._choices[f"{many}, {'with' if with_gradients else 'without'} gradients"] = choice
        return chosen

    def plainly(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call the function with each of these arguments by plain recursion."""
        return self._recurse(lambda: [self(*call) for call in calls])

    def in_batches(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call the function with each of these arguments, its nodes in batches.

        Raises:
            NotBatchable: the function needs the value of a tensor to go on.
        """

        def record() -> list[Any]:
            by_depth = not self._uses_caller
            with recorded_modules(self._active.recursion if by_depth else None) as recorder:
                results = [self(*call) for call in calls]
            recorder.execute()
            return recorder.values(results)

        try:
            return self._recurse(record)
        except UsesCaller:
            self._uses_caller = True
            return self._recurse(record)

    def _recurse(self, work: Callable[[], list[Any]]) -> list[Any]:
        """Run what calls the function, in a thread with a large stack if it goes deep."""

        def run(*, find_cycles: bool) -> list[Any]:
            self._active.recursion = Recursion(find_cycles=find_cycles)
            try:
                return work()
            finally:
                self._active.recursion = None

        try:
            return run(find_cycles=False)
        except RecursionError:
            # A deep tree, or a node that contains itself.
            pass
        try:
            return _with_deep_stack(lambda: run(find_cycles=True))
        except RecursionError:
            raise InvalidInput(
                f"The recursion is deeper than {DEEPEST:,} calls.", accepted="A smaller tree."
            ) from None


class _BoundRecursion:
    """A recursive method of one object."""

    __slots__ = ("_function", "_owner")

    def __init__(self, function: RecursiveFunction, owner: object) -> None:
        self._function = function
        self._owner = owner

    def __call__(self, *args: Any) -> Any:
        return self._function(self._owner, *args)

    def map(self, trees: Iterable[Any], *more: Any) -> list[Any]:
        calls = [(self._owner, tree, *more) for tree in trees]
        return self._function._execute(calls) if calls else []

    def explanation(self) -> ExecutionExplanation:
        return self._function.explanation()


def _with_deep_stack(work: Callable[[], list[Any]]) -> list[Any]:
    found: list[list[Any]] = []
    errors: list[BaseException] = []
    modes = _modes_of_thread()

    def run() -> None:
        try:
            with ExitStack() as entered:
                for mode in modes:
                    entered.enter_context(mode)
                found.append(work())
        except BaseException as error:
            errors.append(error)

    limit = sys.getrecursionlimit()
    size = threading.stack_size(_STACK_BYTES)
    try:
        # The limit is that of the process: another thread with a small stack rarely goes deep.
        sys.setrecursionlimit(max(limit, DEEPEST * _FRAMES_OF_A_CALL))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return found[0]


def _modes_of_thread() -> list[AbstractContextManager[object]]:
    """Return the modes of this thread that a new thread does not have by itself."""
    modes: list[AbstractContextManager[object]] = []
    if torch.is_inference_mode_enabled():
        modes.append(torch.inference_mode())
    modes.append(torch.set_grad_enabled(torch.is_grad_enabled()))
    cached = torch.is_autocast_cache_enabled()
    for kind in _AUTOCAST_DEVICES:
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
            modes.append(torch.autocast(kind, dtype=dtype, cache_enabled=cached))
    return modes


def _with_gradients(results: list[Any]) -> tuple[Any, Any]:
    """Return results and the gradients of the sum of all that have one, by tensor."""
    outputs = [
        leaf
        for leaf in pytree.tree_leaves(results)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if not outputs:
        return results, []
    leaves = _trained_tensors(outputs)
    total = torch.stack([output.sum() for output in outputs]).sum()
    # A tensor of the caller may need its own graph again.
    return results, list(torch.autograd.grad(total, leaves, retain_graph=True))


def _trained_tensors(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors to which gradients of these outputs flow, in one order for all ways."""
    found: dict[int, torch.Tensor] = {}
    seen = set()
    waiting = [output.grad_fn for output in outputs if output.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        waiting += [each for each, _ in node.next_functions if each is not None]
    return [found[key] for key in sorted(found)]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotBatchable) else failure(error)
