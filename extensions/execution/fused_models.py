"""Execute many models of one architecture as one: ``carrel.execution.fuse``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput
from .architecture import ModelGroup, group_models, places_are, places_text
from .choice import (
    CALLS,
    COMPILATION_SECONDS,
    SECONDS,
    ExecutionCandidate,
    ExecutionChoice,
    ExecutionSample,
    choose,
    failure,
)
from .compilation import ProgramCompilation
from .converted_layers.convolution import convertible
from .equality import difference
from .explanation import ExecutionExplanation
from .fused_execution import ArgumentForm, FusedExecution, Outputs, execute_one_by_one
from .group_sizes import GroupVariant, group_candidates, group_sizes, not_compiled
from .purity.tensor_kinds import execution_modes, tensor_kind
from .purity.tensor_snapshot import TensorSnapshot
from .stacked_state import StackedState, stack

MOST_SHAPES: Final = 8
_CONSTANTS: Final = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device})
_LOOPED: Final = object()
"""Shapes of inputs for which a choice is made."""


def fuse(
    models: Sequence[torch.nn.Module],
    *,
    per_model: bool = False,
    classifier: bool = False,
    convert_recurrent: bool = False,
    calls: int = CALLS,
    seconds: float = SECONDS,
) -> FusedModels:
    """Return a function that executes all models, for inference.

    ``fuse(models)(inputs)`` equals ``[model(inputs) for model in models]`` within the tolerance of
    the dtype, without gradients. The first call chooses how; for another shape of the inputs only
    ways without compilation are tried. The weights move into memory that the models share with the
    result: loading weights into a model counts. Once a tensor or submodule of a model is replaced,
    the mode is changed or a hook is registered, all are executed one by one, as they are if a call
    changes a model or its inputs.

    Args:
        per_model: each input has a first dimension for the models, so that ``inputs[i]`` is for
            model ``i``; otherwise all models get the same inputs.
        classifier: outputs are scores of classes along the last dimension; the labels must agree.
        convert_recurrent: LSTM and GRU layers are executed as matrix products step by step, whose
            sums are in another order; otherwise models that have them are executed one by one.
        calls: how often the result will probably be called. Compilation has to pay in as many.
        seconds: no compilation begins later than this in the first call.

    Raises:
        InvalidInput: there is no model, or something that is no module.
    """
    return FusedModels(
        models,
        per_model=per_model,
        classifier=classifier,
        convert_recurrent=convert_recurrent,
        calls=calls,
        seconds=seconds,
    )


class FusedModels:
    """Models that are executed together; see ``fuse``."""

    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        *,
        per_model: bool,
        classifier: bool,
        convert_recurrent: bool,
        calls: int,
        seconds: float,
    ) -> None:
        self._per_model = per_model
        self._parts = [
            _ArchitecturePart(
                group,
                per_model=per_model,
                classifier=classifier,
                calls=calls,
                seconds=seconds,
            )
            for group in group_models(models, convert_recurrent=convert_recurrent)
        ]
        self._count = len(models)

    def __call__(self, *args: Any, **kwargs: Any) -> Outputs:
        """Execute all models.

        Returns:
            One output a model, in the order of the models.

        Raises:
            InvalidInput: inputs for each model are as many as there are models.
            Exception: whatever the models raise on these inputs.
        """
        if self._per_model:
            self._check_inputs(args, kwargs)
        if len(self._parts) == 1:
            return self._parts[0](args, kwargs)
        outputs: Outputs = [None] * self._count
        for part in self._parts:
            own = (args, kwargs)
            if self._per_model:
                index = list(part.group.places)
                own = pytree.tree_map_only(torch.Tensor, lambda t, i=index: t[i], own)
            for place, output in zip(part.group.places, part(*own), strict=True):
                outputs[place] = output
        return outputs

    def explanation(self) -> ExecutionExplanation:
        choices: dict[str, ExecutionChoice] = {}
        notes: list[str] = []
        for part in self._parts:
            choices |= part.choices
            notes += part.notes
        return ExecutionExplanation(choices=choices, notes=tuple(notes))

    def _check_inputs(self, args: Any, kwargs: Any) -> None:
        for tensor in pytree.tree_leaves((args, kwargs)):
            if isinstance(tensor, torch.Tensor) and tensor.shape[:1] != (self._count,):
                raise InvalidInput(
                    f"An input has the shape {tuple(tensor.shape)}.",
                    accepted=f"With per_model=True its first dimension is that of the "
                    f"{self._count} models.",
                )


class _ArchitecturePart:
    """The models of one architecture, with the functions chosen for each shape of inputs."""

    def __init__(
        self, group: ModelGroup, *, per_model: bool, classifier: bool, calls: int, seconds: float
    ) -> None:
        self.group = group
        self.choices: dict[str, ExecutionChoice] = {}
        self.notes: list[str] = []
        self._per_model = per_model
        self._classifier = classifier
        self._calls = calls
        self._seconds = seconds
        self._functions: dict[Any, Callable[..., Outputs]] = {}
        self._state: StackedState | None = None
        self._stacked: TensorSnapshot | None = None
        self._many_shapes = False
        places = places_are(group.places)
        if group.difference:
            self.notes.append(f"{places} executed apart: {group.difference}.")
        if group.obstacle:
            self.notes.append(f"{places} executed one by one: {group.obstacle}.")

    def __call__(self, args: Any, kwargs: Any) -> Outputs:
        with torch.no_grad():
            key = _signature(args, kwargs)
            function = self._functions.get(key)
            if function is None:
                if outputs := self._first_call(key, args, kwargs):
                    return outputs
                function = self._functions[key]
            if function == self._loop:
                return self._loop(args, kwargs)
            try:
                return function(args, kwargs)
            except (MemoryError, RuntimeError) as error:
                # Memory that was there for the sample is not now: one model needs the least.
                self._functions[key] = self._loop
                self.notes.append(
                    f"{places_are(self.group.places)} executed one by one: {failure(error)}."
                )
                return self._loop(args, kwargs)

    def _first_call(self, key: Any, args: Any, kwargs: Any) -> Outputs:
        """Choose a function for inputs of this kind; return the outputs of plain execution.

        It comes first: its errors are the caller's, and nothing was moved until then. Where there
        is nothing to choose, there are no outputs.
        """
        self._functions[key] = self._loop
        if self.group.obstacle or len(self.group.models) == 1:
            return []
        if not all(map(_is_constant, pytree.tree_leaves((args, kwargs)))):
            # An object may have another content in the next call.
            return []
        if len(self._functions) > MOST_SHAPES:
            del self._functions[key]
            if not self._many_shapes:
                self._many_shapes = True
                self.notes.append(
                    f"{places_are(self.group.places)} executed one by one for further shapes of "
                    f"inputs: a choice was made for {MOST_SHAPES}. Pad the inputs to few shapes."
                )
            return self._loop(args, kwargs)
        first = self._state is None
        inputs = ArgumentForm.tensors(args, kwargs)
        before = TensorSnapshot(self.group.models, inputs, versions=True)
        try:
            plain = self._loop(args, kwargs)
        except Exception:
            del self._functions[key]
            raise
        if not before.unchanged():
            self.group = replace(self.group, obstacle="a call changes the model or its inputs")
            self._functions.clear()
            self.notes.append(
                f"{places_are(self.group.places)} executed one by one: a call changes the model "
                "or its inputs, as BatchNorm in training mode does; call model.eval()."
            )
            return plain
        try:
            if self._state is None:
                self._state = stack(self.group.models)
                self._stacked = TensorSnapshot(self.group.models, versions=False)
        except (MemoryError, RuntimeError) as error:
            # Weights that were moved before are where their models look for them.
            self.group = replace(self.group, obstacle=failure(error))
            self._functions.clear()
            places = places_are(self.group.places)
            self.notes.append(f"{places} executed one by one: {self.group.obstacle}.")
            return plain
        try:
            self._functions[key], choice = choose(
                self._candidates(args, kwargs, compiled=first),
                ExecutionSample(
                    call=lambda function: function(args, kwargs),
                    difference=partial(difference, labels=self._classifier),
                ),
                calls=self._calls,
                seconds=self._seconds,
            )
        except Exception:
            del self._functions[key]
            raise
        self.choices[f"{places_text(self.group.places)} on {_shapes(args, kwargs)}"] = choice
        return plain

    def _loop(self, args: Any, kwargs: Any) -> Outputs:
        return execute_one_by_one(self.group.models, args, kwargs, per_model=self._per_model)

    def _usable(self) -> bool:
        """Whether the models are still those that were stacked."""
        assert self._stacked is not None
        if self._stacked.unchanged():
            return True
        note = (
            f"{places_are(self.group.places)} executed one by one in some calls: tensors, layers, "
            "modes or hooks were changed after the choice."
        )
        if note not in self.notes:
            self.notes.append(note)
        return False

    def _candidates(self, args: Any, kwargs: Any, *, compiled: bool) -> list[ExecutionCandidate]:
        state, models = self._state, self.group.models
        assert state is not None
        execution = FusedExecution(
            models,
            state,
            ArgumentForm(args, kwargs),
            per_model=self._per_model,
            usable=self._usable,
        )
        variants = [GroupVariant(fused=partial(execution.in_groups, compiler=not_compiled))]
        if compiled:
            ahead = partial(execution.in_groups, compiler=ProgramCompilation)
            if any(map(convertible, models[0].modules())):
                variants.append(
                    GroupVariant(
                        name="convolutions as products, compiled",
                        fused=partial(ahead, products=True),
                        build_seconds=COMPILATION_SECONDS,
                    )
                )
            variants.append(
                GroupVariant(name="compiled", fused=ahead, build_seconds=COMPILATION_SECONDS)
            )
        inputs = ArgumentForm.tensors(args, kwargs)
        on_processor = all(each.device.type == "cpu" for each in inputs)
        size = sum(each.nbytes for each in inputs) if on_processor else 0
        return group_candidates(
            self._loop,
            variants,
            group_sizes(len(models), size // len(models) if self._per_model else size),
        )


def _signature(args: Any, kwargs: Any) -> Any:
    """Return what a chosen function is chosen for: the kind of each input, and PyTorch's modes."""
    if not kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor):
        return tensor_kind(args[0]), execution_modes()
    leaves, form = pytree.tree_flatten((args, kwargs))
    return str(form), *map(_leaf_kind, leaves), execution_modes()


def _leaf_kind(leaf: Any) -> tuple[Any, ...]:
    if isinstance(leaf, torch.Tensor):
        return tensor_kind(leaf)
    return (type(leaf), repr(leaf)) if type(leaf) in _CONSTANTS else (type(leaf), _LOOPED)


def _is_constant(leaf: Any) -> bool:
    """Whether an input is a tensor or a value that its kind names."""
    return isinstance(leaf, torch.Tensor) or type(leaf) in _CONSTANTS


def _shapes(args: Any, kwargs: Any) -> str:
    leaves = pytree.tree_leaves((args, kwargs))
    return ", ".join(
        " by ".join(map(str, leaf.shape)) or "a number" if isinstance(leaf, torch.Tensor)
        else repr(leaf)
        for leaf in leaves
    )  # fmt: skip
