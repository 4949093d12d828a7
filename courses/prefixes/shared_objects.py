"""Find variables that are also part of a module, and arrays that share memory; runs in the kernel.

A pickle would make copies of them, so that a change of one is no longer seen in the other. The
runner executes this file in the kernel as text, before ``kernel_side``.
"""

from __future__ import annotations

import collections
import enum
import importlib
import os
import sys
import types
from typing import Any

_KERNEL_MODULES = (
    "IPython", "ipykernel", "traitlets", "jupyter_client", "jupyter_core", "zmq", "tornado",
    "asyncio", "ipywidgets", "comm", "debugpy", "carrel", "linecache", "threading", "__main__",
)  # fmt: skip
"""Modules that know the notebook itself."""


class NotSeparable(ValueError):
    """Why variables cannot be copied."""


def module_objects(skipped: set[int], installed: tuple[str, ...]) -> dict[int, tuple[str, Any]]:
    """Return, by id, the objects that modules reach through plain containers, with a module's name.

    Attributes of classes count for modules that are not installed: libraries have constants there.
    The objects are returned too, since no other object has the id of one that is kept.

    Args:
        skipped: ids of objects of the notebook itself.
        installed: how the paths of installed files begin.
    """
    seen: dict[int, tuple[str, Any]] = {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or id(vars(module)) in skipped:
            continue
        if name.partition(".")[0] in _KERNEL_MODULES:
            continue
        file = getattr(module, "__file__", None) or ""
        classes = bool(file) and not os.path.realpath(file).startswith(installed)
        stack = [each for key, each in list(vars(module).items()) if not key.startswith("__")]
        while stack:
            value = stack.pop()
            if id(value) in skipped or id(value) in seen or isinstance(value, types.ModuleType):
                continue
            if isinstance(value, type) and not classes:
                continue  # another module may still count its attributes
            seen[id(value)] = name, value
            stack += _parts(value)
    return {key: each for key, each in seen.items() if not isinstance(each[1], type)}


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*list(dict.keys(value)), *list(dict.values(value))]
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return list(value)
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return []
    held = _attribute(value, "__dict__")
    return list(held.values()) if isinstance(held, dict | types.MappingProxyType) else []


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute; None if there is none, or if the code of the object raises an error."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def is_mutable(found: object) -> bool:
    if isinstance(found, type | types.FunctionType | types.ModuleType | enum.Enum):
        return False
    if callable(found) and _attribute(found, "__qualname__") is not None:
        return False  # a function of compiled code, which is pickled by its name
    plain = isinstance(found, dict | list | set | bytearray | collections.deque)
    return plain or _attribute(found, "__dict__") is not None or type(found).__name__ == "ndarray"


class SharedMemory:
    """Keeps arrays that share memory doing so, which pickle does not.

    Tables of pandas that copy on write are pickled apart: neither sees what changes in the other.
    """

    def __init__(self) -> None:
        self._arrays: dict[int, Any] = {}
        self._tables: set[int] = set()
        self._storages: dict[int, Any] = {}
        self._tensors: dict[int, Any] = {}
        self._flat: dict[int, tuple[Any, int]] = {}

    def add(self, found: Any) -> None:
        numpy: Any = sys.modules.get("numpy")
        torch: Any = sys.modules.get("torch")
        if numpy is not None and isinstance(found, numpy.ndarray):
            self._arrays[id(found)] = found
        elif torch is not None and isinstance(found, getattr(torch, "Tensor", ())):
            tensor: Any = found
            if id(found) not in self._tensors:
                self._tensors[id(found)] = found
                place = tensor.untyped_storage().data_ptr()
                if place and self._storages.setdefault(place, found) is not found:
                    raise NotSeparable("two tensors share memory")
        elif type(found).__module__.partition(".")[0] == "pandas" and hasattr(found, "_mgr"):
            for block in getattr(found._mgr, "blocks", ()):
                self._tables.add(id(block.values))
                self._arrays.setdefault(id(block.values), block.values)

    def check(self) -> None:
        """Prepare arrays that share memory; raise if that cannot be kept."""
        numpy: Any = sys.modules.get("numpy")
        if numpy is None:
            return
        bounds: Any = importlib.import_module(
            "numpy.lib.array_utils" if hasattr(numpy.lib, "array_utils") else "numpy"
        ).byte_bounds
        spans = sorted(
            (*bounds(array), number)
            for number, array in self._arrays.items()
            if isinstance(array, numpy.ndarray) and array.nbytes
        )
        group: list[int] = []
        end = 0
        for low, high, number in spans:
            if low >= end:
                self._keep(group)
                group = []
            group.append(number)
            end = max(end, high)
        self._keep(group)
        places = [(low, high) for low, high, _ in spans]
        for place in self._storages:
            if any(low <= place < high for low, high in places):
                raise NotSeparable("an array and a tensor share memory")

    def _keep(self, group: list[int]) -> None:
        if len(group) < 2:  # noqa: PLR2004
            return
        tables = [number for number in group if number in self._tables]
        if len(tables) == len(group) and _copies_on_write():
            return
        numpy: Any = sys.modules["numpy"]
        arrays = [self._arrays[number] for number in group]
        roots = {id(root): root for root in map(_root, arrays)}
        root = next(iter(roots.values()))
        plain = all(type(each) is numpy.ndarray and not each.dtype.hasobject for each in arrays)
        contiguous = root.flags.c_contiguous or root.flags.f_contiguous
        writeable = all(each.flags.writeable for each in arrays)
        if tables or len(roots) > 1 or not (plain and contiguous and writeable):
            raise NotSeparable("two variables share memory")
        flat = root.ravel(order="K").view("u1")
        start = root.__array_interface__["data"][0]
        for number, array in zip(group, arrays, strict=True):
            self._flat[number] = flat, array.__array_interface__["data"][0] - start

    def reduced(self, found: Any) -> Any:
        """Return how an array is pickled that shares memory: as a view of all of that."""
        if id(found) not in self._flat:
            return None
        flat, offset = self._flat[id(found)]
        numpy: Any = sys.modules["numpy"]
        return numpy.ndarray, (found.shape, found.dtype, flat, offset, found.strides)


def _root(array: Any) -> Any:
    while isinstance(array.base, type(array)):
        array = array.base
    return array


def _copies_on_write() -> bool:
    """Whether a change of a table of pandas is never seen in another one."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and int(pandas.__version__.partition(".")[0]) >= 3  # noqa: PLR2004


def install() -> None:
    globals()["get_ipython"]().kernel.carrel_sharing = types.SimpleNamespace(**globals())
