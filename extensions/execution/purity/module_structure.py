"""Whether modules are still built as they were: layers, modes, attributes and hooks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import torch

from .hooks import hook_tables

_OF_MODULE: Final = frozenset(vars(torch.nn.Module())) - {"training"}
"""What a module holds beside its own attributes."""
_NOT_READ: Final[Mapping[type, frozenset[str]]] = {
    torch.nn.Linear: frozenset({"in_features", "out_features"}),
    torch.nn.Conv2d: frozenset(
        {"in_channels", "out_channels", "kernel_size", "transposed", "output_padding"}
    ),
}
"""Attributes that the ``forward`` of a class does not read."""
_WITHOUT_OWN_STATE: Final = (
    torch.nn.Module, torch.Tensor, type, FunctionType, BuiltinFunctionType, MethodType, ModuleType,
)  # fmt: skip


class ModuleStructure:
    """What the results of modules depend on, beside the values of parameters and buffers.

    These are submodules, names of parameters and buffers, modes, attributes, and that no hook is
    registered where none was; further the global names and outer variables that ``forward`` and the
    functions it calls by name use, and what ``forward`` reads of its class. Lists, dictionaries and
    sets are compared by their elements, other objects by their own attributes, but not by what
    these refer to; not compared are slots of objects, and the names in Python modules.

    Args:
        code: a function whose names are compared, too.
    """

    def __init__(
        self, roots: Iterable[torch.nn.Module], *, code: Callable[..., Any] | None = None
    ) -> None:
        self.modules = list({id(m): m for root in roots for m in root.modules()}.values())
        self._kinds: list[Any] = list(map(type, self.modules))
        self._without_hooks = [each for each in hook_tables(self.modules) if not each]
        tables = [
            table
            for module in self.modules
            for table in (module._parameters, module._buffers, module._modules)
        ]
        # Most are empty: their truth is seen faster than their lengths.
        self._empty = [each for each in tables if not each]
        self._sized: list[Any] = [each for each in tables if each]
        submodules = [each._modules.values() for each in self.modules if each._modules]
        self._submodule_views = submodules
        self._submodules = list(chain.from_iterable(submodules))
        self._tensor_views = [
            table.values()
            for module in self.modules
            for table in (module._parameters, module._buffers)
            if table
        ]
        self._owners: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._containers: list[tuple[Any, list[Any]]] = []
        self._seen: set[tuple[int, bool]] = set()
        for module in self.modules:
            self._watch(vars(module), _NOT_READ.get(type(module), frozenset()) | _OF_MODULE)
        self._of_classes: list[tuple[Mapping[str, Any], str]] = []
        for kind in dict.fromkeys(self._kinds):
            self._watch_class(kind, ["forward"])
            self._watch_code(kind.forward, owner=kind)
        self._watch_code(code)
        self._class_values = self._current_class_values()
        self._attributes = self._current_attributes()
        self._lengths = self._current_lengths()

    def unchanged(self) -> bool:
        """Return whether all is as it was."""
        return (
            not any(self._without_hooks)
            and not any(self._empty)
            and self._lengths == self._current_lengths()
            and all(map(operator.is_, self._attributes, self._current_attributes()))
            and all(map(operator.is_, self._submodules, chain.from_iterable(self._submodule_views)))
            and self._kinds == list(map(type, self.modules))
            and all(map(operator.is_, self._class_values, self._current_class_values()))
            and all(_same(saved, _elements(each)) for each, saved in self._containers)
        )

    def tensors(self) -> list[torch.Tensor | None]:
        """Return the parameters and buffers as they are now, those of one module after another."""
        return list(chain.from_iterable(self._tensor_views))

    def names(self, root: torch.nn.Module) -> list[str]:
        """Return the names of these tensors in a module, in the same order."""
        paths = {id(module): f"{path}." if path else "" for path, module in root.named_modules()}
        return [
            f"{paths[id(module)]}{name}"
            for module in self.modules
            for name in (*module._parameters, *module._buffers)
        ]

    def _watch(self, attributes: dict[str, Any], skipped: frozenset[str] = frozenset()) -> None:
        """Compare the attributes of an object from now on.

        Args:
            skipped: names of attributes that are not compared.
        """
        self._sized.append(attributes)
        names = [name for name in attributes if name not in skipped]
        self._owners += [attributes] * len(names)
        self._names += names
        for name in names:
            self._look_into(attributes[name], objects=bool(skipped))

    def _watch_code(self, function: Any, owner: type | None = None) -> None:
        """Compare what the names in a function refer to from now on.

        Args:
            owner: the class of which it is a method; other methods by these names are included.
        """
        function = getattr(function, "__func__", function)
        if not isinstance(function, FunctionType) or (id(function), False) in self._seen:
            return
        self._seen.add((id(function), False))
        if str(function.__module__).partition(".")[0] == "torch":
            return
        of_code, outer = function.__code__.co_names, function.__globals__
        names = [name for name in of_code if name in outer]
        self._owners += [outer] * len(names)
        self._names += names
        values = [outer[name] for name in names]
        for cell in function.__closure__ or ():
            self._containers.append((cell, _elements(cell)))
            values += _elements(cell)
        for value in values:
            self._watch_code(value)
            self._look_into(value, objects=True)
        if owner is not None:
            self._watch_class(owner, of_code)
            for name in of_code:
                self._watch_code(getattr(owner, name, None), owner)

    def _watch_class(self, kind: type, names: Iterable[str]) -> None:
        """Compare what a class and those above it have by these names from now on."""
        for name in names:
            base = next((each for each in kind.__mro__ if name in vars(each)), None)
            if base is not None and base.__module__.partition(".")[0] != "torch":
                self._of_classes.append((vars(base), name))

    def _look_into(self, value: Any, *, objects: bool) -> None:
        # An object within another one is not looked into, but as an attribute of a module it is.
        if (id(value), objects) in self._seen:
            return
        self._seen.add((id(value), objects))
        if isinstance(value, list | tuple | dict | set | frozenset):
            elements = _elements(value)
            if not isinstance(value, tuple | frozenset):
                self._containers.append((value, elements))
            for element in elements:
                self._look_into(element, objects=objects)
        elif objects and hasattr(value, "__dict__") and not isinstance(value, _WITHOUT_OWN_STATE):
            self._watch(vars(value))

    def _current_attributes(self) -> list[Any]:
        return list(map(dict.get, self._owners, self._names))

    def _current_class_values(self) -> list[Any]:
        return [attributes.get(name) for attributes, name in self._of_classes]

    def _current_lengths(self) -> list[int]:
        return list(map(len, self._sized))


def _elements(container: Any) -> list[Any]:
    if isinstance(container, CellType):
        try:
            return [container.cell_contents]
        except ValueError:  # the variable was deleted
            return []
    if isinstance(container, dict):
        return [*container, *container.values()]
    return list(container)


def _same(saved: list[Any], current: list[Any]) -> bool:
    return len(saved) == len(current) and all(map(operator.is_, saved, current))
