"""Find the lines of a function that may have side effects, from its source.

A function is pure here if nothing that it does can be seen after it has returned: then it may be
executed twice to compare results. The rule is conservative. Arguments are tensors, numbers, text
and built-in containers of these. Every other object that the code can reach (global names,
variables of a closure, modules) is one of a known kind: plain data, a function that is analysed
likewise, a module of ``torch.nn`` that keeps no state, or one of the listed functions of Python,
``math`` and ``torch``. So every call and operator does something known, and what remains is syntax:
stores, in-place operations and methods that change their object. These are allowed on objects that
the function has made itself.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

import torch

from .function_body import FunctionBody, OuterNames
from .function_source import source_of
from .hooks import hooks_among
from .known_functions import (
    CONTAINERS,
    DROPOUT,
    PLAIN,
    TENSORS,
    effect_of_object,
    effect_of_torch,
    is_allowed,
)
from .side_effects import CodePlace, FunctionPurity, SideEffect

_MOST_ELEMENTS: Final = 10_000
_MOST_FUNCTIONS: Final = 200
_NO_STATE_IN_TRAINING: Final = (
    *DROPOUT,
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.MultiheadAttention,
    torch.nn.RNNBase,
    torch.nn.RReLU,
    torch.nn.TransformerEncoderLayer,
    torch.nn.TransformerDecoderLayer,
)


def analyse(
    function: Callable[..., Any], immutable: frozenset[str] = frozenset()
) -> FunctionPurity:
    """Find the side effects that a function may have, those of what it calls included.

    Args:
        immutable: names of parameters whose values are numbers, text or None.
    """
    analysis = PurityAnalysis()
    if isinstance(function, torch.nn.Module):
        analysis.check_module(function, CodePlace("", 0, type(function).__name__))
    elif isinstance(function, MethodType) and isinstance(function.__self__, torch.nn.Module):
        place = CodePlace("", 0, function.__qualname__)
        analysis.check_module(function.__self__, place)
        method: Any = function.__func__
        analysis.check_function(method, place, bound=function.__self__)
    elif isinstance(function, FunctionType):
        place = CodePlace(function.__code__.co_filename, function.__code__.co_firstlineno, "")
        analysis.check_function(function, place, immutable=immutable)
    else:
        name = type(function).__name__
        analysis.add(CodePlace("", 0, name), f"is {name}, not a function written in Python")
    return analysis.found


class PurityAnalysis:
    """One analysis: the functions that were visited, and what was found."""

    def __init__(self) -> None:
        self.found = FunctionPurity()
        self._visited: set[Any] = set()
        self._kept: list[Any] = []

    def add(self, place: CodePlace, reason: str, rewrite: str = "") -> None:
        effect = SideEffect(
            file=place.file, line=place.line, function=place.function, reason=reason,
            rewrite=rewrite,
        )  # fmt: skip
        if effect not in self.found.effects:
            self.found.effects.append(effect)

    def check_function(
        self,
        function: FunctionType,
        place: CodePlace,
        *,
        bound: torch.nn.Module | None = None,
        immutable: frozenset[str] = frozenset(),
    ) -> None:
        key = (id(function), id(bound))
        if key in self._visited:
            return
        self._visited.add(key)
        self._kept.append(function)
        if len(self._visited) > _MOST_FUNCTIONS:
            self.add(place, f"calls more than {_MOST_FUNCTIONS} functions")
            return
        name = function.__qualname__.rpartition(".<locals>.")[2]
        node = source_of(function.__code__)
        if node is None:
            self.add(place, f"uses {name}, whose source cannot be read")
            return
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.check_value(value, place, f"a default of {name}")
        names = OuterNames(function)
        if bound is not None and function.__code__.co_argcount:
            names.known[function.__code__.co_varnames[0]] = bound
        own = CodePlace(function.__code__.co_filename, 0, name)
        FunctionBody(self, names, node, own, immutable=immutable).check()

    def check_value(self, value: Any, place: CodePlace, name: str) -> None:
        """Check an object that the code refers to."""
        kind = type(value)
        if kind in PLAIN:
            return
        if kind in TENSORS:
            if value._backward_hooks:
                self.add(place, f"uses {name}, a tensor with hooks")
            self.found.tensors[id(value)] = value
        elif kind in CONTAINERS:
            self._check_elements(value, place, name)
        elif isinstance(value, torch.nn.Module):
            self.check_module(value, place)
        elif is_allowed(value):
            pass
        elif kind is FunctionType:
            if str(value.__module__).partition(".")[0] == "torch":
                self.add(place, *effect_of_torch(value.__name__))
            else:
                self.check_function(value, place)
        elif kind is MethodType and isinstance(value.__self__, torch.nn.Module):
            self.check_module(value.__self__, place)
            self.check_function(value.__func__, place, bound=value.__self__)
        else:
            self.add(place, *effect_of_object(value, name))

    def _check_elements(self, value: Any, place: CodePlace, name: str) -> None:
        if id(value) in self._visited:
            return
        self._visited.add(id(value))
        self._kept.append(value)
        if len(value) > _MOST_ELEMENTS:
            self.add(place, f"uses {name}, which has more than {_MOST_ELEMENTS:,} elements")
            return
        elements = [*value, *value.values()] if isinstance(value, dict) else list(value)
        for element in elements:
            self.check_value(element, place, f"an element of {name}")

    def check_module(self, module: torch.nn.Module, place: CodePlace) -> None:
        """Check what a call of a module can do."""
        if id(module) in self._visited:
            return
        self._visited.add(id(module))
        self.found.modules[id(module)] = module
        self.found.tensors.update((id(each), each) for each in module.parameters())
        for part in module.modules():
            self._visited.add(id(part))
            kind = type(part)
            name = kind.__name__
            if reason := hooks_among([part]):
                self.add(place, f"uses {name}, where {reason}")
            elif "forward" in vars(part):
                self.add(place, f"uses {name}, which has a forward of its own")
            elif kind.__module__.startswith("torch.nn.modules."):
                self._check_layer(part, place)
            elif any(
                getattr(kind, method) is not getattr(torch.nn.Module, method)
                for method in ("__call__", "__getattr__", "__setattr__", "__getattribute__")
            ) or not isinstance(kind.forward, FunctionType):
                self.add(place, f"uses {name}, which changes how modules are called")
            else:
                self.check_function(kind.forward, place, bound=part)

    def _check_layer(self, layer: torch.nn.Module, place: CodePlace) -> None:
        name = type(layer).__name__
        if getattr(layer, "inplace", False):
            self.add(
                place,
                f"uses {name} with inplace=True, which may write to an argument",
                "Make the layer without inplace=True.",
            )
        if getattr(layer, "max_norm", None) is not None:
            self.add(place, f"uses {name} with max_norm, which changes its weights")
        if layer.training and isinstance(layer, _NO_STATE_IN_TRAINING):
            self.add(
                place,
                f"uses {name} in training mode, which draws random numbers or changes its buffers",
                "Call model.eval() where you do not train.",
            )
