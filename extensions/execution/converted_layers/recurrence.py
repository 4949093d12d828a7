"""LSTM and GRU as matrix products step by step, for which PyTorch has batching rules."""

from __future__ import annotations

from typing import Any, Final

import torch

RECURRENT: Final = (torch.nn.LSTM, torch.nn.GRU)
"""Layers that can be converted."""


class UnrolledRecurrence(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """What a layer of ``torch.nn.LSTM`` or ``torch.nn.GRU`` computes, with the same parameters.

    The equations are those of PyTorch's documentation. Inputs are one tensor, not packed, with or
    without a dimension for the batch.

    Args:
        layer: without projection (``proj_size``) and without dropout in training mode.
    """

    def __init__(self, layer: torch.nn.LSTM | torch.nn.GRU) -> None:
        super().__init__()
        self._lstm = isinstance(layer, torch.nn.LSTM)
        self._layers = layer.num_layers
        self._directions = 2 if layer.bidirectional else 1
        self._width = layer.hidden_size
        self._bias = layer.bias
        self._batch_first = layer.batch_first
        for name, parameter in layer.named_parameters():
            self.register_parameter(name, parameter)

    def forward(self, inputs: Any, state: Any = None) -> tuple[Any, Any]:
        single = inputs.dim() == 2  # noqa: PLR2004 # steps by features
        if single:
            inputs = inputs.unsqueeze(1)
            if state is not None:
                pair = (state[0].unsqueeze(1), state[1].unsqueeze(1)) if self._lstm else None
                state = pair or state.unsqueeze(1)
        elif self._batch_first:
            inputs = inputs.transpose(0, 1)
        first = self._first_state(inputs, state)
        lasts = []
        outputs = inputs
        for layer in range(self._layers):
            sides = []
            for direction in range(self._directions):
                place = layer * self._directions + direction
                side, last = self._direction(outputs, [each[place] for each in first], place)
                sides.append(side)
                lasts.append(last)
            outputs = torch.cat(sides, -1)
        found = [torch.stack(parts) for parts in zip(*lasts, strict=True)]
        if single:
            outputs, found = outputs.squeeze(1), [each.squeeze(1) for each in found]
        elif self._batch_first:
            outputs = outputs.transpose(0, 1)
        return outputs, tuple(found) if self._lstm else found[0]

    def _first_state(self, inputs: Any, state: Any) -> list[Any]:
        if state is not None:
            return list(state) if self._lstm else [state]
        count = self._layers * self._directions
        zeros = inputs.new_zeros(count, inputs.shape[1], self._width)
        return [zeros, zeros] if self._lstm else [zeros]

    def _direction(self, inputs: Any, state: list[Any], place: int) -> tuple[Any, list[Any]]:
        layer, reverse = divmod(place, self._directions)
        end = f"l{layer}_reverse" if reverse else f"l{layer}"
        into, own = getattr(self, f"weight_ih_{end}"), getattr(self, f"weight_hh_{end}")
        bias = getattr(self, f"bias_ih_{end}") if self._bias else None
        own_bias = getattr(self, f"bias_hh_{end}") if self._bias else None
        linear = torch.nn.functional.linear
        entered = linear(inputs, into, bias)
        steps = entered.unbind(0)
        outputs = []
        step = self._lstm_step if self._lstm else self._gru_step
        for each in reversed(steps) if reverse else steps:
            state = step(each, linear(state[0], own, own_bias), state)
            outputs.append(state[0])
        return torch.stack(outputs[::-1] if reverse else outputs), state

    @staticmethod
    def _lstm_step(entered: Any, held: Any, state: list[Any]) -> list[Any]:
        into, forget, update, out = (entered + held).chunk(4, -1)
        cell = forget.sigmoid() * state[1] + into.sigmoid() * update.tanh()
        return [out.sigmoid() * cell.tanh(), cell]

    @staticmethod
    def _gru_step(entered: Any, held: Any, state: list[Any]) -> list[Any]:
        (reset, keep, new), (own_reset, own_keep, own_new) = entered.chunk(3, -1), held.chunk(3, -1)
        keep = (keep + own_keep).sigmoid()
        new = (new + (reset + own_reset).sigmoid() * own_new).tanh()
        return [(1 - keep) * new + keep * state[0]]


def unrolled(model: torch.nn.Module) -> torch.nn.Module:
    """Replace the recurrent layers of a model in place; return the model."""
    if isinstance(model, RECURRENT):
        return UnrolledRecurrence(model)
    for name, child in list(model.named_children()):
        setattr(model, name, unrolled(child))
    return model


def conversion_obstacle(layer: torch.nn.LSTM | torch.nn.GRU) -> str:
    """Return why a layer is not converted, as a part of a sentence; empty if it can be."""
    if layer.proj_size:
        return "has proj_size, which is not converted"
    if layer.training and layer.dropout:
        return "has dropout in training mode; call model.eval()"
    return ""
