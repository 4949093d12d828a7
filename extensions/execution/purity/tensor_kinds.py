"""The kinds of tensors, and modes: what code without guards is compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def tensor_kind(value: Any) -> tuple[Any, ...]:
    """Return the kind of an argument: what code without guards is compiled for."""
    if not isinstance(value, torch.Tensor):
        return (type(value),)
    # A sparse tensor has no strides. Numbers may be stored with the other sign (``is_neg``).
    strides = value.stride() if value.layout is torch.strided else None
    return (
        type(value),
        value.shape,
        value.dtype,
        value.device,
        strides,
        value.is_neg(),
        value.is_conj(),
        torch._C._functorch.is_functorch_wrapped_tensor(value),
    )


def execution_modes() -> tuple[Any, ...]:
    """Return the modes of PyTorch that code without guards has as they were at its compilation."""
    return (
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
    )


class TensorKinds:
    """The kinds of some tensors, to be compared with those of others in each call."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._kinds = [tensor_kind(each) for each in tensors]
        self._guards = _guards_of(tensors)

    def match(self, tensors: Sequence[Any]) -> bool:
        """Return whether these tensors have the same kinds, in this order."""
        if len(tensors) != len(self._kinds):
            return False
        # The guards compare modes of autograd, too: only their agreement decides.
        if self._guards is not None and self._guards.check(*tensors):
            return True
        return self._kinds == [tensor_kind(each) for each in tensors]


def _guards_of(tensors: Sequence[Any]) -> Any:
    """Return what compares kinds in C++, as dynamo does; None where that is not to be had.

    It takes 50 ns a tensor, where Python needs a microsecond. Its interface is private.
    """
    try:
        from torch._C._dynamo.guards import TensorGuards  # noqa: PLC0415 # private

        return TensorGuards(
            *tensors,
            dynamic_dims_sizes=[list(each.shape) for each in tensors],
            dynamic_dims_strides=[list(each.stride()) for each in tensors],
        )
    except Exception:  # a tensor without strides, or another version of PyTorch
        return None
