"""Execute models of one architecture in groups, each group as one call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from .converted_layers.convolution import as_products
from .converted_layers.recurrence import unrolled
from .group_sizes import Compiler
from .stacked_state import StackedState

Outputs = list[Any]


def execute_one_by_one(
    models: Sequence[torch.nn.Module],
    args: Any,
    kwargs: Any,
    *,
    per_model: bool,
    first: int = 0,
) -> Outputs:
    """Execute models in a loop.

    Args:
        per_model: inputs have a first dimension for the models.
        first: the place of the first model in it.
    """
    if not per_model:
        return [model(*args, **kwargs) for model in models]
    outputs = []
    for place, model in enumerate(models, start=first):
        own, named = pytree.tree_map_only(torch.Tensor, lambda t, i=place: t[i], (args, kwargs))
        outputs.append(model(*own, **named))
    return outputs


class ArgumentForm:
    """How arguments are made of their tensors; whatever is no tensor is the same in each call."""

    def __init__(self, args: Any, kwargs: Any) -> None:
        leaves, self._form = pytree.tree_flatten((args, kwargs))
        self._constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [
            place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)
        ]

    @staticmethod
    def tensors(args: Any, kwargs: Any) -> list[torch.Tensor]:
        if not kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor):
            return [args[0]]
        leaves = pytree.tree_leaves((args, kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def arguments(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, Any]:
        """Return positional and named arguments with these tensors."""
        leaves = list(self._constants)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._form)
        return args, kwargs


class FusedExecution:
    """Models with stacked weights, for arguments of one form.

    Args:
        state: the weights of all models.
        per_model: inputs have a first dimension for the models.
        usable: whether the stacked weights are still those of the models.
    """

    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        state: StackedState,
        form: ArgumentForm,
        *,
        per_model: bool,
        usable: Callable[[], bool],
    ) -> None:
        self._models = models
        self._state = state
        self._form = form
        self._per_model = per_model
        self._usable = usable

    def in_groups(
        self, size: int, compiler: Compiler, *, products: bool = False
    ) -> Callable[..., Outputs]:
        """Return what executes whole groups as one, and the models left over one by one.

        Args:
            compiler: of a function of the weights and inputs of a group, all as tensors.
            products: small convolutions are executed as sums of products.
        """
        # Without memory of its own: the weights come with each call.
        base = unrolled(copy.deepcopy(self._models[0]).to("meta"))
        if products:
            base = as_products(base)
        starts = range(0, len(self._models) - len(self._models) % size, size)
        weights = []
        for start in starts:
            members = self._state.members(start, start + size)
            weights.append(members.trainable | members.frozen | members.buffers)
        names = list(weights[0])
        form, per_model = self._form, self._per_model
        dimension = 0 if per_model else None

        def one(own: Any, inputs: Any) -> Any:
            args, kwargs = form.arguments(inputs)
            return functional_call(base, dict(zip(names, own, strict=True)), args, kwargs)

        def group(*tensors: Any) -> Any:
            own, inputs = list(tensors[: len(names)]), list(tensors[len(names) :])
            return vmap(one, in_dims=(0, dimension))(own, inputs)

        execute = compiler(group)
        groups = [(start, list(own.values())) for start, own in zip(starts, weights, strict=True)]
        rest = self._models[len(starts) * size :]

        def run(args: Any, kwargs: Any) -> Outputs:
            if not self._usable():
                # Tensors or modules were replaced, or the mode was changed.
                return execute_one_by_one(self._models, args, kwargs, per_model=per_model)
            inputs = form.tensors(args, kwargs)
            outputs: Outputs = []
            for start, own in groups:
                rows = [each[start : start + size] for each in inputs] if per_model else inputs
                outputs += _unstack(execute(*own, *rows), size)
            if rest:
                outputs += execute_one_by_one(
                    rest, args, kwargs, per_model=per_model, first=len(starts) * size
                )
            return outputs

        return run


def _unstack(outputs: Any, size: int) -> Outputs:
    """Split the outputs of a group into those of its models."""
    if isinstance(outputs, torch.Tensor):
        return list(outputs.unbind())
    leaves, form = pytree.tree_flatten(outputs)
    rows = [leaf.unbind() for leaf in leaves]
    return [pytree.tree_unflatten([row[index] for row in rows], form) for index in range(size)]
