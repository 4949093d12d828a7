"""Execute many models of one architecture as one: ``carrel.execution.fuse``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput
from .architecture import ModelGroup, group_models, places_text
from .choice import (
    CALLS,
    SECONDS,
    ExecutionChoice,
    ExecutionSample,
    choose,
    failure,
)
from .equality import difference
from .explanation import ExecutionExplanation
from .group_sizes import Compiler, group_candidates
from .purity.tensor_snapshot import TensorSnapshot
from .stacked_state import StackedState, stack
from .unrolled_recurrence import unrolled

Outputs = list[Any]
MOST_SHAPES: Final = 8
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
    result: loading weights into a model counts. Once a tensor or submodule of a model is replaced
    or the mode is changed, all are executed one by one, as they are if a call changes a model or
    its inputs.

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
        self._count = len(models)
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
        places = places_text(group.places)
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
                self.notes.append(f"{places_text(self.group.places)} one by one: {failure(error)}.")
                return self._loop(args, kwargs)

    def _first_call(self, key: Any, args: Any, kwargs: Any) -> Outputs:
        """Choose a function for inputs of this kind; return the outputs of plain execution.

        It comes first: its errors are the caller's, and nothing was moved until then. Where there
        is nothing to choose, there are no outputs.
        """
        self._functions[key] = self._loop
        if self.group.obstacle or len(self.group.models) == 1:
            return []
        if len(self._functions) > MOST_SHAPES:
            del self._functions[key]
            if not self._many_shapes:
                self._many_shapes = True
                self.notes.append(
                    f"{places_text(self.group.places)} executed one by one for further shapes of "
                    f"inputs: a choice was made for {MOST_SHAPES}. Pad the inputs to few shapes."
                )
            return self._loop(args, kwargs)
        first = self._state is None
        inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if _is_tensor(leaf)]
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
                f"{places_text(self.group.places)} executed one by one: a call changes the model "
                "or its inputs, as BatchNorm in training mode does; call model.eval()."
            )
            return plain
        if self._state is None:
            self._state = stack(self.group.models)
            self._stacked = TensorSnapshot(self.group.models, versions=False)
        try:
            self._functions[key], choice = choose(
                group_candidates(
                    self._loop,
                    partial(self._fused, self._state),
                    len(self.group.models),
                    compiled=first,
                ),
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
        models = self.group.models
        if not self._per_model:
            return [model(*args, **kwargs) for model in models]
        outputs = []
        for index, model in enumerate(models):
            own, named = pytree.tree_map_only(torch.Tensor, lambda t, i=index: t[i], (args, kwargs))
            outputs.append(model(*own, **named))
        return outputs

    def _fused(
        self,
        state: StackedState,
        size: int,
        compiler: Compiler,
    ) -> Callable[..., Outputs]:
        """Return what executes whole groups as one, and the models left over one by one."""
        count = len(self.group.models)
        # Without memory of its own: the weights come with each call.
        base = unrolled(copy.deepcopy(self.group.models[0]).to("meta"))
        dimension = 0 if self._per_model else None

        def one(weights: Any, args: Any, kwargs: Any) -> Any:
            return functional_call(base, weights, args, kwargs)

        def group(weights: Any, args: Any, kwargs: Any) -> Any:
            return vmap(one, in_dims=(0, dimension, dimension))(weights, args, kwargs)

        execute = compiler(group)
        stacked = self._stacked
        assert stacked is not None
        starts = range(0, count - count % size, size)
        weights = []
        for start in starts:
            members = state.members(start, start + size)
            weights.append(members.trainable | members.frozen | members.buffers)
        rest = self.group.models[len(starts) * size :]

        def run(args: Any, kwargs: Any) -> Outputs:
            if not stacked.unchanged():
                # Tensors or modules were replaced, or the mode was changed.
                return self._loop(args, kwargs)
            outputs: Outputs = []
            for start, own in zip(starts, weights, strict=True):
                rows = (args, kwargs)
                if self._per_model:
                    rows = _rows(rows, start, start + size)
                outputs += _unstack(execute(own, *rows), size)
            for index, model in enumerate(rest, start=len(starts) * size):
                own_args, named = args, kwargs
                if self._per_model:
                    own_args, named = pytree.tree_map_only(
                        torch.Tensor, lambda t, i=index: t[i], (args, kwargs)
                    )
                outputs.append(model(*own_args, **named))
            return outputs

        return run


def _is_tensor(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor)


def _unstack(outputs: Any, size: int) -> Outputs:
    """Split the outputs of a group into those of its models."""
    if isinstance(outputs, torch.Tensor):
        return list(outputs.unbind())
    leaves, form = pytree.tree_flatten(outputs)
    rows = [leaf.unbind() for leaf in leaves]
    return [pytree.tree_unflatten([row[index] for row in rows], form) for index in range(size)]


def _rows(inputs: Any, first: int, stop: int) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor[first:stop], inputs)


def _signature(args: Any, kwargs: Any) -> Any:
    """Return what a chosen function is chosen for: the kind of each input."""
    if not kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor):
        tensor = args[0]
        return (tensor.shape, tensor.dtype, tensor.device)
    leaves, form = pytree.tree_flatten((args, kwargs))
    return (
        str(form),
        *(
            (leaf.shape, leaf.dtype, leaf.device) if isinstance(leaf, torch.Tensor) else repr(leaf)
            for leaf in leaves
        ),
    )


def _shapes(args: Any, kwargs: Any) -> str:
    leaves = pytree.tree_leaves((args, kwargs))
    return ", ".join(
        " by ".join(map(str, leaf.shape)) or "a number" if isinstance(leaf, torch.Tensor)
        else repr(leaf)
        for leaf in leaves
    )  # fmt: skip
