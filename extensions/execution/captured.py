"""Execute a function of tensors without Python between its operations: ``execution.capture``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput
from .choice import (
    CALLS,
    COMPILATION_SECONDS,
    SECONDS,
    ExecutionCandidate,
    ExecutionChoice,
    ExecutionSample,
    check_callable,
    choose,
    without_random_numbers,
)
from .compilation import (
    CountedCompilation,
    compiled_program,
    execution_modes,
    module_of,
    tensor_kind,
)
from .equality import difference
from .explanation import ExecutionExplanation
from .purity import hook_tables, hooks_among
from .purity.tensor_snapshot import TensorSnapshot, modules_and_tensors


def capture(
    function: Callable[..., Any],
    example: torch.Tensor | Sequence[torch.Tensor],
    *,
    classifier: bool = False,
    calls: int = CALLS,
    seconds: float = SECONDS,
) -> CapturedFunction:
    """Return what executes a module or function for inputs like the example, without gradients.

    Candidates are ``torch.compile``, ``torch.export`` with AOTInductor, whose package is kept in
    ``~/.cache/carrel/execution`` for the next process, and for inputs on a GPU a CUDA graph. Inputs
    of another shape, dtype or device, or in another mode (autocast), are executed plainly. So are
    all once the weights or the mode of an exported or recorded module were changed: capture it
    again then. A function that changes its module or its inputs, and one whose modules have hooks,
    is executed plainly, as are calls while hooks are registered later.

    Args:
        example: the arguments; a tensor is one argument.
        classifier: outputs are scores of classes along the last dimension; the labels must agree.
        calls: how often the result will probably be called.
        seconds: no compilation begins later than this.

    Raises:
        InvalidInput: an argument of the example is no tensor, or the function cannot be called.
        Exception: whatever the function raises on the example.
    """
    check_callable(function)
    if not isinstance(example, torch.Tensor | tuple | list):
        raise InvalidInput(
            f"The example is {type(example).__name__}.", accepted="A tensor, or a tuple of tensors."
        )
    arguments = (example,) if isinstance(example, torch.Tensor) else tuple(example)
    for index, each in enumerate(arguments):
        if not isinstance(each, torch.Tensor):
            raise InvalidInput(
                f"Argument {index} of the example is {type(each).__name__}.", accepted="Tensors."
            )
    return CapturedFunction(
        function, arguments, classifier=classifier, calls=calls, seconds=seconds
    )


class CapturedFunction:
    """A function for inputs of one kind; see ``capture``."""

    def __init__(
        self,
        function: Callable[..., Any],
        example: tuple[torch.Tensor, ...],
        *,
        classifier: bool,
        calls: int,
        seconds: float,
    ) -> None:
        self._function = function
        self._kinds = [tensor_kind(each) for each in example]
        self._modes = execution_modes()
        self._others = 0
        self._hooked = 0
        self._chosen = function
        self._choice: ExecutionChoice | None = None
        modules, _ = modules_and_tensors(function)
        within = list(chain.from_iterable(module.modules() for module in modules))
        self._hooks = hook_tables(within)
        self._obstacle = hooks_among(within)
        with torch.no_grad():
            if self._obstacle:
                function(*(argument.clone() for argument in example))
            elif _changes_something(function, example):
                self._obstacle = "a call changes the module or its inputs"
            else:
                self._choose(example, classifier=classifier, calls=calls, seconds=seconds)

    def _choose(
        self, example: tuple[torch.Tensor, ...], *, classifier: bool, calls: int, seconds: float
    ) -> None:
        function = self._function
        candidates = [
            ExecutionCandidate(name="plain", build=lambda: function),
            ExecutionCandidate(
                name="compiled",
                build=partial(CountedCompilation, function),
                build_seconds=COMPILATION_SECONDS,
            ),
            ExecutionCandidate(
                name="exported",
                build=partial(exported, function, example),
                build_seconds=COMPILATION_SECONDS,
            ),
        ]
        if example and example[0].is_cuda:
            candidates.append(
                ExecutionCandidate(name="CUDA graph", build=partial(graphed, function, example))
            )
        self._chosen, self._choice = choose(
            candidates,
            ExecutionSample(
                call=lambda candidate: self._execute(candidate, example),
                difference=partial(difference, labels=classifier),
            ),
            calls=calls,
            seconds=seconds,
        )

    def __call__(self, *args: torch.Tensor) -> Any:
        with torch.no_grad():
            return self._execute(self._chosen, args)

    def _execute(self, chosen: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if chosen is self._function:
            return chosen(*args)
        if any(self._hooks):
            # A package and a graph do not call them, nor does what torch.compile made earlier.
            self._hooked += 1
            return self._function(*args)
        if [tensor_kind(each) for each in args] == self._kinds and execution_modes() == self._modes:
            return chosen(*args)
        self._others += 1
        return self._function(*args)

    def explanation(self) -> ExecutionExplanation:
        notes = []
        if self._obstacle:
            notes.append(f"Executed plainly: {self._obstacle}.")
        if self._others:
            notes.append(
                "Calls executed plainly, as their inputs have another shape, dtype, device or "
                f"layout in memory than the example, or PyTorch is in another mode: {self._others}."
            )
        if self._hooked:
            notes.append(
                f"Calls executed plainly, as hooks were registered on a module: {self._hooked}."
            )
        choices = {} if self._choice is None else {"the example": self._choice}
        return ExecutionExplanation(choices=choices, notes=tuple(notes))


def _changes_something(function: Callable[..., Any], example: tuple[torch.Tensor, ...]) -> bool:
    """Call the function with copies of the example; return whether it changes a tensor of its own
    or an argument."""
    arguments = [argument.clone() for argument in example]
    modules, tensors = modules_and_tensors(function)
    before = TensorSnapshot(modules, [*tensors, *arguments], versions=True)
    with without_random_numbers():
        function(*arguments)
    return not before.unchanged()


def exported(function: Callable[..., Any], example: tuple[torch.Tensor, ...]) -> Callable[..., Any]:
    """Load the package of a function, or build it.

    Raises:
        InvalidInput: the function uses tensors that are no arguments and no weights of a module,
            whose changes cannot be seen.
    """
    module = function if isinstance(function, torch.nn.Module) else module_of(function)
    program = torch.export.export(module, example)
    if module is not function and program.state_dict:
        raise InvalidInput("The function uses tensors that are neither arguments nor weights.")
    if program.graph_signature.buffers_to_mutate:
        raise InvalidInput("A call changes the module.", accepted="Call model.eval() first.")
    # A package has the weights and the mode that the module had.
    return _while_unchanged(function, compiled_program(program))


def graphed(function: Callable[..., Any], example: tuple[torch.Tensor, ...]) -> Callable[..., Any]:
    """Record a CUDA graph; not tried on a GPU yet."""

    # In a module, its method forward would be replaced.
    def wrapper(*args: torch.Tensor) -> Any:
        return function(*args)

    recorded = torch.cuda.make_graphed_callables(wrapper, example)

    def run(*args: torch.Tensor) -> Any:
        # The next call writes into the same memory.
        return pytree.tree_map_only(torch.Tensor, torch.clone, recorded(*args))

    return _while_unchanged(function, run)


def _while_unchanged(
    function: Callable[..., Any], faster: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what is faster as long as the modules and tensors of the function are as now."""
    modules, tensors = modules_and_tensors(function)
    now = TensorSnapshot(modules, tensors, versions=True)

    def run(*args: torch.Tensor) -> Any:
        return faster(*args) if now.unchanged() else function(*args)

    return run
