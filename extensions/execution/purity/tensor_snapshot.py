"""Whether modules and tensors are still what they were when something was made for them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, Final

import torch

from .module_structure import ModuleStructure
from .tensor_kinds import TensorKinds

_VERSION: Final = operator.attrgetter("_version")


class TensorSnapshot:
    """The structure of modules, their parameters and buffers, and further tensors.

    A hook that is registered for a module, or for all modules, is a change, too.

    Args:
        versions: whether a tensor that was written to counts as changed, too. Writes through
            ``tensor.data`` or NumPy are not seen.
    """

    def __init__(
        self,
        modules: Iterable[torch.nn.Module],
        tensors: Iterable[torch.Tensor] = (),
        *,
        versions: bool,
    ) -> None:
        self._structure = ModuleStructure(modules)
        # Kept, so that no new tensor gets the identity of one of these.
        self._values = self._structure.tensors()
        self._tensors = [each for each in self._values if each is not None]
        self._tensors += tensors
        self._kinds = TensorKinds(self._tensors)
        # Tensors of torch.inference_mode have no version.
        self._with_versions = [each for each in self._tensors if not each.is_inference()]
        # A sparse tensor has no address of its own.
        self._with_addresses = [each for each in self._tensors if each.layout is torch.strided]
        self._addresses = self._current_addresses()
        self._versions = self._current_versions() if versions else None

    def unchanged(self) -> bool:
        """Return whether all is as it was."""
        return (
            self._structure.unchanged()
            and all(map(operator.is_, self._values, self._structure.tensors()))
            and self._addresses == self._current_addresses()
            and self._kinds.match(self._tensors)
            and (self._versions is None or self._versions == self._current_versions())
        )

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
