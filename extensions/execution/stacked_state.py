"""The weights of models of one architecture in one block each, shared with the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedState:
    """Parameters and buffers of models, stacked along a new first dimension.

    The tensors of the models become views into the stacked ones: no weight is held twice, and what
    changes in one is seen in the other. Tensors here do not record gradients.

    Attributes:
        trainable: parameters that require a gradient, by name.
        frozen: the other parameters.
    """

    trainable: Tensors
    frozen: Tensors
    buffers: Tensors

    def members(self, first: int, stop: int) -> StackedState:
        """Return views of the models from ``first`` to before ``stop``."""
        return StackedState(
            trainable=_rows(self.trainable, first, stop),
            frozen=_rows(self.frozen, first, stop),
            buffers=_rows(self.buffers, first, stop),
        )

    def tensors(self) -> Iterator[torch.Tensor]:
        for each in (self.trainable, self.frozen, self.buffers):
            yield from each.values()


def stack(models: Sequence[torch.nn.Module]) -> StackedState:
    """Stack the weights of models, and let the models use the stacked memory.

    One parameter of one model is moved at a time, so that at most the largest is held twice
    meanwhile.
    """
    trainable: Tensors = {}
    frozen: Tensors = {}
    parameters = [dict(model.named_parameters()) for model in models]
    for name, parameter in parameters[0].items():
        target = trainable if parameter.requires_grad else frozen
        target[name] = _stack_one([each[name] for each in parameters])
    buffers = [dict(model.named_buffers()) for model in models]
    return StackedState(
        trainable=trainable,
        frozen=frozen,
        buffers={name: _stack_one([each[name] for each in buffers]) for name in buffers[0]},
    )


def _stack_one(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        stacked = tensors[0].detach().new_empty((len(tensors), *tensors[0].shape))
        for tensor, row in zip(tensors, stacked.unbind(), strict=True):
            row.copy_(tensor)
            tensor.data = row
    return stacked


def _rows(tensors: Mapping[str, torch.Tensor], first: int, stop: int) -> Tensors:
    return {name: tensor[first:stop] for name, tensor in tensors.items()}
