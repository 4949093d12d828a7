"""Answer the questions of a test from a snapshot of the student's kernel.

A question is ``[verb, …]``: look up a name, call it, or apply an operation. The answer is a value
or the exception that was raised, with printed text and changed arguments. The student's code has
run here, so the checks are on the other side.
"""

from __future__ import annotations

import contextlib
import io
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from .messages import Json
from .values import EXCEPTIONS, CannotCross, Decoder, Encoder

MAX_PRINTED: Final = 1 << 20
_MUTABLE: Final = frozenset({"list", "dict", "set", "bytearray", "array"})
_asked: list[bool] = []
_held: list[object] = []
"""Objects with references in this snapshot; a reference is an index into it."""


def answer(namespace: dict[str, object], question: Json) -> Json:
    """``{"value": …}`` or ``{"raised": [type, message]}``, with output and changed arguments."""
    if not _asked:  # as every cell of a kernel does: earlier warnings are shown again
        with warnings.catch_warnings():
            _asked.append(True)
    out, err = io.StringIO(), io.StringIO()
    given: list[tuple[Json, object]] = []
    reply: dict[str, Json]
    try:
        verb, *parts = cast("list[Json]", question)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            found = _VERBS[cast("str", verb)](_Sides(namespace, given), *parts)
        encoder = Encoder(_refer)
        reply = {"value": encoder.encode(found)}
        changed = _changed(given)
        if changed:
            reply["changed"] = changed
    except BaseException as error:
        reply = {"raised": _raised(error)}
    if out.tell():
        reply["stdout"] = out.getvalue()[:MAX_PRINTED]
    if err.tell():
        reply["stderr"] = err.getvalue()[:MAX_PRINTED]
    return reply


class _Sides:
    """The student's names, and the arguments of this question as they were rebuilt."""

    def __init__(self, names: dict[str, object], given: list[tuple[Json, object]]) -> None:
        self.names = names
        self._given = given

    def value(self, data: Json) -> object:
        return Decoder(_resolve).decode(data)

    def argument(self, data: Json) -> object:
        """An argument; noted if the call could change it in index."""
        value = self.value(data)
        if isinstance(data, list) and data[0] in _MUTABLE:
            self._given.append((data, value))
        return value


def _name(sides: _Sides, name: Json) -> object:
    try:
        return sides.names[cast("str", name)]
    except KeyError:
        raise NameError(f"name {name!r} is not defined") from None


def _bind(sides: _Sides, name: Json, value: Json) -> object:
    sides.names[cast("str", name)] = sides.value(value)
    return None


def _unbind(sides: _Sides, name: Json) -> object:
    if cast("str", name) not in sides.names:
        raise NameError(f"name {name!r} is not defined")
    del sides.names[cast("str", name)]
    return None


def _call(sides: _Sides, of: Json, arguments: Json, keywords: Json) -> object:
    positional = [sides.argument(one) for one in cast("Sequence[Json]", arguments)]
    named = {key: sides.argument(v) for key, v in cast("Mapping[str, Json]", keywords).items()}
    return cast("Callable[..., object]", sides.value(of))(*positional, **named)


def _apply(sides: _Sides, name: Json, *operands: Json) -> object:
    return OPERATIONS[cast("str", name)](*[sides.value(one) for one in operands])


OPERATIONS: Final[Mapping[str, Callable[..., object]]] = {
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "isinstance": isinstance,
    "issubclass": issubclass,
    **{kind.__name__: kind for kind in (len, iter, next, bool, str, repr, int, float, complex)},
    **{kind.__name__: kind for kind in (abs, round, hash)},
    **{
        name: getattr(operator, name)
        for name in (
            *("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "matmul", "truediv"),
            *("floordiv", "mod", "pow", "and_", "or_", "xor", "neg", "pos", "invert", "index"),
            *("getitem", "setitem", "delitem", "contains"),
        )
    },
}
"""What a test may do with an object in the student's kernel."""
_VERBS: Final[Mapping[str, Callable[..., object]]] = {
    "name": _name,
    "bind": _bind,
    "unbind": _unbind,
    "call": _call,
    "apply": _apply,
}


def _changed(given: Sequence[tuple[Json, object]]) -> list[Json]:
    """The new form of each mutable argument, or null where it is unchanged."""
    after: list[Json] = []
    for data, value in given:
        form = Encoder(_refer).encode(value)
        after.append(None if form == data else form)
    return after if any(form is not None for form in after) else []


def _refer(value: object) -> Json:
    for index, held in enumerate(_held):
        if held is value:
            return ["ref", index, _kind(value), type(value).__name__[:100]]
    _held.append(value)
    return ["ref", len(_held) - 1, _kind(value), type(value).__name__[:100]]


def _kind(value: object) -> str:
    return "type" if isinstance(value, type) else "callable" if callable(value) else "object"


def _resolve(data: Sequence[Json]) -> object:
    if data[0] != "ref" or type(data[1]) is not int:
        raise CannotCross("only a reference is looked up here")
    return _held[data[1]]


def _raised(error: BaseException) -> Json:
    """Its nearest builtin type, and its text."""
    for kind in type(error).__mro__:
        if EXCEPTIONS.get(kind.__name__) is kind:
            break
    else:
        return ["SystemExit", f"{type(error).__name__}: {error}"[:10_000]]
    own = type(error).__name__
    text = str(error) if own == kind.__name__ else f"{own}: {error}"
    return [kind.__name__, text[:10_000]]
