"""Whether modules and tensors are still what they were when something was made for them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from types import FunctionType, MethodType
from typing import Any, Final

import torch

from .hooks import hook_tables

_VERSION: Final = operator.attrgetter("_version")


class TensorSnapshot:
    """The parameters, buffers and submodules of modules, their modes, and further tensors.

    A hook that is registered for a module, or for all modules, is a change, too.

    Args:
        versions: whether a tensor that was written to counts as changed, too.
    """

    def __init__(
        self,
        modules: Iterable[torch.nn.Module],
        tensors: Iterable[torch.Tensor] = (),
        *,
        versions: bool,
    ) -> None:
        self._modules = list({id(m): m for root in modules for m in root.modules()}.values())
        self._modes = self._current_modes()
        self._without_hooks = [each for each in hook_tables(self._modules) if not each]
        members = [
            each
            for module in self._modules
            for each in (module._parameters, module._buffers, module._modules)
        ]
        # Most are empty: their truth is seen faster than their lengths.
        self._empty = [each for each in members if not each]
        self._filled = [each for each in members if each]
        self._lengths = self._current_lengths()
        self._views = [each.values() for each in self._filled]
        self._values = list(self._current_values())
        # Kept, so that no new tensor gets the identity of one of these.
        self._tensors = [each for each in self._values if isinstance(each, torch.Tensor)]
        self._tensors += tensors
        # Tensors of torch.inference_mode have no version.
        self._with_versions = [each for each in self._tensors if not each.is_inference()]
        # A sparse tensor has no address of its own.
        self._with_addresses = [each for each in self._tensors if each.layout is torch.strided]
        self._addresses = self._current_addresses()
        self._versions = self._current_versions() if versions else None

    def unchanged(self) -> bool:
        """Return whether all is as it was."""
        return (
            self._modes == self._current_modes()
            and not any(self._without_hooks)
            and not any(self._empty)
            and self._lengths == self._current_lengths()
            and all(map(operator.is_, self._values, self._current_values()))
            and self._addresses == self._current_addresses()
            and (self._versions is None or self._versions == self._current_versions())
        )

    def _current_modes(self) -> list[bool]:
        return [module.training for module in self._modules]

    def _current_values(self) -> Iterable[Any]:
        return chain.from_iterable(self._views)

    def _current_lengths(self) -> list[int]:
        return list(map(len, self._filled))

    def _current_addresses(self) -> list[int]:
        return list(map(torch.Tensor.data_ptr, self._with_addresses))

    def _current_versions(self) -> list[int]:
        return list(map(_VERSION, self._with_versions))


def modules_and_tensors(
    function: Callable[..., Any],
) -> tuple[list[torch.nn.Module], list[torch.Tensor]]:
    """Return what a function uses beside its arguments: itself if it is a module, the object of a
    method, and what its closure and the global names in its code refer to."""
    held: list[Any] = [function]
    if isinstance(function, MethodType):
        held.append(function.__self__)
        function = function.__func__
    if isinstance(function, FunctionType):
        names = function.__globals__
        held += [names[name] for name in function.__code__.co_names if name in names]
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # a variable without a value yet
                held.append(cell.cell_contents)
    modules = [each for each in held if isinstance(each, torch.nn.Module)]
    return modules, [each for each in held if isinstance(each, torch.Tensor)]
