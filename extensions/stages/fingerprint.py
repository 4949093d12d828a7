"""A digest of functions and of what they use, to recognise results of the same code and data.

It covers the code of a function, its defaults and closure, and the globals that it names: functions
and classes of the same module by their code, plain values, arrays, tensors and containers by their
content, other objects by their attributes. Functions of other modules count by their name.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable
from typing import Any

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def fingerprint(*functions: Callable[..., Any]) -> str:
    """Return a digest that is the same in each process with the same Python version."""
    walk = _FingerprintWalk()
    for function in functions:
        inner: Any = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        walk.module = getattr(inner, "__module__", None) or ""
        walk.add(function)
    return walk.digest.hexdigest()


class _FingerprintWalk:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        """Keeps temporary objects alive, so that no id is used twice."""
        self.module = ""

    def add(self, value: Any) -> None:
        """Add a value; an object that was added before counts by its number."""
        if isinstance(value, _PLAIN):
            self._note(type(value).__name__, repr(value))
            return
        if id(value) in self._seen:
            self._note("seen", str(self._seen[id(value)]))
            return
        if not isinstance(value, tuple | frozenset | types.CodeType):  # Python may share equal ones
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            self._note("module", value.__name__)
        elif isinstance(value, types.MethodType):
            self.add(value.__func__)
            self.add(value.__self__)
        elif isinstance(value, functools.partial):
            self.add(value.func)
            self.add(value.args)
            self.add(value.keywords)
        else:
            self._object(value)

    def _note(self, *texts: str) -> None:
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            self.digest.update(f"{len(data)}:".encode() + data)

    def _function(self, function: types.FunctionType) -> None:
        self._note("function", function.__qualname__)
        if function.__module__ != self.module:
            self._note(str(function.__module__))
            return
        self.add(function.__code__)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:  # not yet assigned
                self._note("empty")
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                self._note(name)
                self.add(function.__globals__[name])

    def _code(self, code: types.CodeType) -> None:
        self._note("code", code.co_code.hex(), *code.co_names, *code.co_varnames)
        for constant in code.co_consts:
            self.add(constant)

    def _class(self, kind: type) -> None:
        self._note("class", kind.__module__, kind.__qualname__)
        if kind.__module__ == self.module:
            for base in kind.__bases__:
                self.add(base)
            for name, value in sorted(vars(kind).items()):
                inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                if isinstance(inner, (types.FunctionType, *_PLAIN)) and name != "__doc__":
                    self._note(name)
                    self.add(inner)

    def _object(self, value: Any) -> None:
        self._note(type(value).__module__, type(value).__qualname__)
        if isinstance(value, dict):
            for key, item in value.items():
                self.add(key)
                self.add(item)
        elif isinstance(value, list | tuple):
            self._note(str(len(value)))
            for item in value:
                self.add(item)
        elif isinstance(value, set | frozenset):
            self._note(*sorted(map(repr, value)))
        elif (array := _array(value)) is not None:
            if array.dtype.hasobject:
                self.add(array.tolist())
            else:
                self._note(array.dtype.str, str(array.shape))
                self.digest.update(array.tobytes())
        elif isinstance(getattr(value, "__dict__", None), dict):
            self.add(type(value))
            self.add(vars(value))


def _array(value: Any) -> Any:
    """Return a NumPy array of an array, a tensor or a table; None for anything else."""
    for method in ("detach", "cpu", "to_numpy", "numpy"):
        if callable(getattr(type(value), method, None)):
            try:
                value = getattr(value, method)()
            except (RuntimeError, TypeError, ValueError):
                return None
    return value if hasattr(value, "tobytes") and hasattr(value, "dtype") else None


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found
