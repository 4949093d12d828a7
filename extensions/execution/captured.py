"""Execute a function of tensors without Python between its operations: ``execution.capture``."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

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
    module_of,
)
from .converted_layers import convolution, linear
from .equality import difference
from .explanation import ExecutionExplanation
from .purity import hook_tables, hooks_among
from .purity.module_structure import ModuleStructure
from .purity.tensor_kinds import TensorKinds, execution_modes
from .purity.tensor_snapshot import TensorSnapshot, modules_and_tensors

_FEW_ROWS: Final = 8
"""Rows of an example up to which small linear layers are tried as sums of products."""


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
    of another shape, dtype or device, or in another mode (autocast), are executed plainly.

    A package reads the weights where they are: whatever is written into them counts, and other
    weights of the same shapes and strides do. Once layers, attributes or the mode of an exported
    module, a global name or outer variable of its code, or the weights of a recorded module were
    changed, all calls are executed plainly: capture it again then. Not seen are changes in arrays,
    in slots, in Python modules, and in objects that an object in an attribute refers to. A function
    that changes its module or its inputs, and one whose modules have hooks, is executed plainly, as
    are calls while hooks are registered later.

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
        self._kinds = TensorKinds(example)
        self._modes = execution_modes()
        self._plain_calls: Counter[str] = Counter()
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
                build=partial(ExportedFunction, function, example),
                build_seconds=COMPILATION_SECONDS,
            ),
        ]
        if _gains_by_products(function, example):
            candidates.append(
                ExecutionCandidate(
                    name="exported, layers as products",
                    build=partial(ExportedFunction, function, example, products=True),
                    build_seconds=COMPILATION_SECONDS,
                )
            )
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
        if execution_modes() == self._modes:
            if isinstance(chosen, ExportedFunction):
                tensors = chosen.usable_tensors(args)
                if tensors is not None:
                    return chosen(*tensors)
            elif not any(self._hooks) and self._kinds.match(args):
                return chosen(*args)
        self._plain_calls[self._reason(args)] += 1
        return self._function(*args)

    def _reason(self, args: tuple[Any, ...]) -> str:
        """Return why a call is executed plainly."""
        if any(self._hooks):
            return "hooks were registered on a module"
        if execution_modes() == self._modes and self._kinds.match(args):
            return "the module was changed (capture it again)"
        return (
            "their inputs have another shape, dtype, device or layout in memory than the example, "
            "or PyTorch is in another mode"
        )

    def explanation(self) -> ExecutionExplanation:
        notes = []
        if self._obstacle:
            notes.append(f"Executed plainly: {self._obstacle}.")
        notes += [
            f"Calls executed plainly, as {reason}: {calls}."
            for reason, calls in self._plain_calls.items()
        ]
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


class ExportedFunction:
    """A function of tensors as a package, with the weights of a module as arguments.

    Whatever is written into the weights counts, and others of the same kind may take their place.

    Args:
        products: small layers are executed as sums of products.

    Raises:
        InvalidInput: the function uses tensors that are no arguments and no weights of a module,
            or a call changes the module.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        example: tuple[torch.Tensor, ...],
        *,
        products: bool = False,
    ) -> None:
        modules, _ = modules_and_tensors(function)
        self._structure = ModuleStructure(modules, code=function)
        is_module = isinstance(function, torch.nn.Module)
        weights = self._structure.tensors() if is_module else []
        self._present = [place for place, each in enumerate(weights) if each is not None]
        self._absent = [place for place, each in enumerate(weights) if each is None]
        tensors = [*(weights[place] for place in self._present), *example]
        call = self._with_weights(function, products=products) if is_module else function
        program = torch.export.export(module_of(call), tuple(tensors))
        if program.graph_signature.user_inputs_to_mutate:
            raise InvalidInput("A call changes the module.", accepted="Call model.eval() first.")
        self._kinds = TensorKinds(tensors)
        self._execute = compiled_program(program)

    def _with_weights(self, module: Any, *, products: bool) -> Callable[..., Any]:
        """Return a module as a function of its weights and arguments."""
        every = self._structure.names(module)
        names = [every[place] for place in self._present]
        base = products_of(module) if products else module

        def call(*tensors: torch.Tensor) -> Any:
            own, inputs = tensors[: len(names)], tensors[len(names) :]
            named = dict(zip(names, own, strict=True))
            # Weights that are one tensor now may be several in a later call.
            return torch.func.functional_call(base, named, inputs, tie_weights=False)

        return call

    def usable_tensors(self, args: Sequence[Any]) -> list[Any] | None:
        """Return the weights and arguments of a call; None where the package is not for them."""
        if not self._structure.unchanged():
            return None
        weights = self._structure.tensors() if self._present else []
        if self._absent:
            if any(weights[place] is not None for place in self._absent):
                return None
            weights = [weights[place] for place in self._present]
        tensors = [*weights, *args]
        return tensors if self._kinds.match(tensors) else None

    def __call__(self, *tensors: Any) -> Any:
        """Execute the package with what ``usable_tensors`` returned."""
        return self._execute(*tensors)


def products_of(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy without weights, whose small layers are sums of products."""
    return linear.as_products(convolution.as_products(copy.deepcopy(module).to("meta")))


def _gains_by_products(function: object, example: Sequence[torch.Tensor]) -> bool:
    """Return whether a function is a module with small layers, and the example has few rows."""
    return (
        isinstance(function, torch.nn.Module)
        and all(each.dim() < 2 or len(each) <= _FEW_ROWS for each in example)  # noqa: PLR2004
        and any(
            linear.convertible(each) or convolution.convertible(each) for each in function.modules()
        )
    )


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
