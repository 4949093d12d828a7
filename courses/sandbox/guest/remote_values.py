"""Run a test where no student's code ever ran: unknown names are asked of the student's kernel.

Answers are plain data, rebuilt here as exact builtin types, or a ``RemoteValue``: a proxy for an
object in the student's kernel. A proxy sends calls with their arguments to the student's side, but
never what a result is compared with.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from .iteration_guard import end_as_error
from .messages import Json
from .values import EXCEPTIONS, CannotCross, Decoder, Encoder

Ask = Callable[[Json], Json]


class StudentStopped(BaseException):
    """The student's side does not answer, or raised what is not an ``Exception``.

    Not an ``Exception`` either: no test can catch it.
    """


class _RemoteNames(dict[str, object]):
    """The builtins; every other name is asked of the student's kernel."""

    def __init__(self, wire: _Wire) -> None:
        super().__init__(vars(builtins))
        self._wire = wire

    def __missing__(self, name: str) -> object:
        if name.startswith("__") or name in _IPYTHON:
            raise KeyError(name)
        return self._wire.ask("name", name)


_IPYTHON: Final = frozenset({"get_ipython", "In", "Out", "_", "_i", "exit", "quit"})


def prepare(namespace: dict[str, object], ask: Ask) -> None:
    """Prepare a namespace for the cell of a test."""
    wire = _Wire(ask)
    namespace["__builtins__"] = _RemoteNames(wire)
    namespace["__bind__"] = wire.bind
    namespace["__unbind__"] = wire.unbind
    namespace["__taught__"] = wire.taught(namespace)


class _Wire:
    """Sends questions and rebuilds the answers."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def taught(self, namespace: dict[str, object]) -> Callable[..., None]:
        def take(*names: str) -> None:
            """Use the student's definitions of these names, which the course redefines."""
            for name in names:
                namespace[name] = self.ask("name", name)

        return take

    def bind(self, name: str, value: object) -> None:
        self.ask("bind", name, self.plain(value))

    def unbind(self, namespace: dict[str, object], name: str) -> None:
        """``del NAME``: here, if the test has set it, and in the student's kernel."""
        namespace.pop(name, None)
        self.ask("unbind", name)

    def call(self, of: Json, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        values = [*arguments, *keywords.values()]
        forms = [self.plain(value) for value in values]
        count = len(arguments)
        named = dict(zip(keywords, forms[count:], strict=True))
        reply = self._send("call", of, forms[:count], named)
        self._write_back(values, forms, reply.get("changed"))
        return self._value(reply)

    def ask(self, verb: str, *parts: Json) -> object:
        # Only the end of the student's own iterator ends an iteration of the test.
        return self._value(self._send(verb, *parts), may_end=(verb, parts[0]) == ("apply", "next"))

    def plain(self, value: object) -> Json:
        return Encoder(_reference_to).encode(value)

    def _send(self, *question: Json) -> Mapping[str, Json]:
        reply = self._ask(list(question))
        if not isinstance(reply, dict):
            raise StudentStopped("the student's code does not answer")
        for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            text = reply.get(name)
            if isinstance(text, str):
                stream.write(text)
        return reply

    def _value(self, reply: Mapping[str, Json], *, may_end: bool = False) -> object:
        raised = reply.get("raised")
        if isinstance(raised, list) and len(raised) == 2:  # noqa: PLR2004 - type and text
            error = _exception(EXCEPTIONS.get(str(raised[0]), StudentStopped), str(raised[1]))
            if isinstance(error, StopAsyncIteration | StopIteration) and not may_end:
                raise end_as_error(error)
            raise error
        return Decoder(self._resolve).decode(reply.get("value"))

    def _resolve(self, data: Sequence[Json]) -> object:
        if data[0] == "module":
            return _module(data)
        if len(data) != 4 or type(data[1]) is not int:  # noqa: PLR2004 - a reference's parts
            raise CannotCross("a reference is malformed")
        return RemoteValue(self, data[1], str(data[2]), str(data[3]))

    def _write_back(self, values: Sequence[object], forms: Sequence[Json], changed: Json) -> None:
        """Apply the changes that a call made to its arguments to the test's own objects."""
        if not isinstance(changed, list):
            return
        mutable = [
            value
            for value, form in zip(values, forms, strict=True)
            if isinstance(form, list) and form[0] in _REFILL
        ]
        for value, form in zip(mutable, changed, strict=False):
            if form is not None:
                new = Decoder(self._resolve).decode(form)
                if type(new) is type(value):
                    _REFILL[type(value).__name__](value, new)


def _refill_array(old: object, new: object) -> None:
    if old.shape == new.shape and old.dtype == new.dtype:  # type: ignore[attr-defined]
        old[...] = new  # type: ignore[index]


def _refill_mapping(old: object, new: object) -> None:
    assert isinstance(old, dict | set)
    old.clear()
    old.update(new)  # type: ignore[call-overload, arg-type]


def _refill_sequence(old: object, new: object) -> None:
    cast("list[object]", old)[:] = cast("list[object]", new)


_REFILL: Final[Mapping[str, Callable[[object, object], None]]] = {
    "list": _refill_sequence,
    "bytearray": _refill_sequence,
    "dict": _refill_mapping,
    "set": _refill_mapping,
    "array": _refill_array,
    "ndarray": _refill_array,
}


def _exception(kind: type[BaseException], text: str) -> BaseException:
    try:
        return kind(text)
    except TypeError:  # UnicodeDecodeError and its like want more than a text
        return RuntimeError(f"{kind.__name__}: {text}")


def _module(data: Sequence[Json]) -> object:
    """Modules pass by name: the test gets its own, clean one."""
    name = str(data[1]) if len(data) > 1 else ""
    if not all(part.isidentifier() for part in name.split(".")):
        raise CannotCross("a module has no name")
    return importlib.import_module(name)


def _reference_to(value: object) -> Json:
    if type(value) is RemoteValue:
        return _reference(value)
    raise CannotCross(
        f"a {type(value).__name__} cannot be passed to the student's code: only numbers, text, "
        "lists, tuples, dicts, sets, arrays, and what the student's code itself returned"
    )


def _reference(value: RemoteValue) -> Json:
    index = cast("int", object.__getattribute__(value, "_index"))
    kind = cast("str", object.__getattribute__(value, "_kind"))
    return ["ref", index, kind, ""]


def _remote(name: str) -> Callable[..., object]:
    """An operation that runs in the student's kernel, with any operands."""

    def method(self: RemoteValue, *operands: object) -> object:
        wire = cast("_Wire", object.__getattribute__(self, "_wire"))
        return wire.ask("apply", name, _reference(self), *[wire.plain(one) for one in operands])

    return method


def _remote_between(name: str) -> Callable[..., object]:
    """An operation between two objects of the student; expected values are never sent."""

    def method(self: RemoteValue, other: object) -> object:
        if type(other) is RemoteValue:
            return _remote(name)(self, other)
        if name in ("eq", "ne"):
            return name == "ne"
        raise TypeError(
            f"what the student's code returned is not a plain value: it cannot be used with {name}"
        )

    return method


class RemoteValue:
    """A proxy for an object in the student's kernel."""

    __slots__ = ("_index", "_kind", "_name", "_wire")

    def __init__(self, wire: _Wire, index: int, kind: str, name: str) -> None:
        for slot, value in (("_wire", wire), ("_index", index), ("_kind", kind), ("_name", name)):
            object.__setattr__(self, slot, value)

    def __call__(self, *arguments: object, **keywords: object) -> object:
        wire = cast("_Wire", object.__getattribute__(self, "_wire"))
        return wire.call(_reference(self), arguments, keywords)

    def __getattribute__(self, name: str) -> object:
        if name.startswith("__") and name not in ("__doc__", "__name__", "__dict__"):
            return object.__getattribute__(self, name)
        return _remote("getattr")(self, name)

    def __instancecheck__(self, one: object) -> bool:
        return type(one) is RemoteValue and _remote("isinstance")(one, self) is True

    def __subclasscheck__(self, one: object) -> bool:
        return type(one) is RemoteValue and _remote("issubclass")(one, self) is True

    def __repr__(self) -> str:
        return str(_remote("repr")(self))

    __hash__ = cast("Callable[[object], int]", _remote("hash"))


def _define_operators() -> None:
    """Define the operators on the type, where Python looks them up."""
    for name in ("setattr", "delattr", "len", "iter", "next", "bool", "str", "int", "float"):
        setattr(RemoteValue, f"__{name}__", _remote(name))
    for name in ("complex", "abs", "round", "neg", "pos", "invert", "index"):
        setattr(RemoteValue, f"__{name}__", _remote(name))
    for name in ("getitem", "setitem", "delitem"):
        setattr(RemoteValue, f"__{name}__", _remote(name))
    comparing = ("eq", "ne", "lt", "le", "gt", "ge", "contains", "add", "sub", "mul", "matmul")
    for name in (*comparing, "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor"):
        setattr(RemoteValue, f"__{name.rstrip('_')}__", _remote_between(name))
    for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"):
        setattr(RemoteValue, f"__r{name}__", _remote_between(name))


_define_operators()
