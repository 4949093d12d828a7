"""Encode the values that pass between a test and a student's kernel as plain data.

Only exact builtin types and plain NumPy arrays are copied; other objects pass as references.
Decoding checks every tag, type and length.
"""

from __future__ import annotations

import base64
import builtins
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .messages import Json

MAX_DEPTH: Final = 60
MAX_NODES: Final = 200_000
MAX_BYTES: Final = 8 << 20
_INT_DIGITS: Final = 1 << 18
_DTYPE: Final = re.compile(r"[<>|][biufc](?:1|2|4|8|16)|[<>]U\d{1,6}|\|S\d{1,6}")
"""Numbers, booleans and fixed-length text; never ``O``, whose elements are objects."""
PLAIN_TYPES: Final[Mapping[str, type]] = {
    kind.__name__: kind
    for kind in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset),
        *(range, object, type(None)),
    )
}
EXCEPTIONS: Final[Mapping[str, type[BaseException]]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__name__ == name
}
"""Types of exceptions pass by name, where the name is that of a builtin one."""


class CannotCross(TypeError):
    """A value is not plain, too deep or too large; the text says which."""


class Encoder:
    """Turns one message's values into JSON; ``refer`` gives a reference to what is not plain."""

    def __init__(self, refer: Callable[[object], Json]) -> None:
        self._refer = refer
        self._nodes = 0
        self._bytes = 0

    def encode(self, value: object, depth: int = 0) -> Json:
        self._count(1, 8)
        if depth > MAX_DEPTH:
            raise CannotCross(f"a value is nested more than {MAX_DEPTH} deep")
        kind = type(value)
        if value is None:
            return ["none"]
        if kind in _ATOMS:
            return self._atom(value)
        if kind is list or kind is tuple or kind is set or kind is frozenset:
            assert isinstance(value, list | tuple | set | frozenset)
            return [kind.__name__, [self.encode(one, depth + 1) for one in value]]
        if kind is dict:
            assert isinstance(value, dict)
            pairs = list(value.items())
            deeper = depth + 1
            return ["dict", [[self.encode(k, deeper), self.encode(v, deeper)] for k, v in pairs]]
        if kind is type(sys):
            return ["module", str(getattr(value, "__name__", ""))]
        if isinstance(value, type):
            name = value.__name__
            if PLAIN_TYPES.get(name) is value or EXCEPTIONS.get(name) is value:
                return ["type", name]
        return self._array(value) or self._refer(value)

    def _atom(self, value: object) -> Json:
        if isinstance(value, bool):
            return ["bool", value]
        if isinstance(value, int):
            self._count(0, value.bit_length() // 4)
            return ["int", hex(value)]
        if isinstance(value, float):
            return ["float", value.hex()]
        if isinstance(value, complex):
            return ["complex", value.real.hex(), value.imag.hex()]
        if isinstance(value, str):
            self._count(0, len(value))
            return ["str", value]
        if isinstance(value, bytes | bytearray):
            self._count(0, len(value))
            return [type(value).__name__, base64.b64encode(value).decode()]
        assert isinstance(value, range)
        return ["range", hex(value.start), hex(value.stop), hex(value.step)]

    def _array(self, value: object) -> Json:
        """An array or a scalar of NumPy with a plain dtype; None for anything else."""
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return None
        kind = type(value)
        if kind is not numpy.ndarray and not (
            issubclass(kind, numpy.generic) and kind.__module__ == "numpy"
        ):
            return None
        dtype = value.dtype.str  # type: ignore[attr-defined]
        if not _DTYPE.fullmatch(dtype):
            return None
        array = numpy.asarray(value)
        self._count(0, array.nbytes)
        data = base64.b64encode(numpy.ascontiguousarray(array).tobytes()).decode()
        tag = "array" if kind is numpy.ndarray else "scalar"
        return [tag, dtype, list(array.shape), data]

    def _count(self, nodes: int, size: int) -> None:
        self._nodes += nodes
        self._bytes += size
        if self._nodes > MAX_NODES or self._bytes > MAX_BYTES:
            raise CannotCross(
                f"a value is larger than {MAX_BYTES >> 20} MiB or has more than {MAX_NODES} parts"
            )


_ATOMS: Final = frozenset({bool, int, float, complex, str, bytes, bytearray, range})


class Decoder:
    """Builds values from untrusted JSON; ``resolve`` takes the parts of a reference."""

    def __init__(self, resolve: Callable[[Sequence[Json]], object]) -> None:
        self._resolve = resolve
        self._nodes = 0

    def decode(self, data: Json, depth: int = 0) -> object:
        """Raises CannotCross: it is not what an ``Encoder`` makes."""
        self._nodes += 1
        if depth > MAX_DEPTH + 1 or self._nodes > MAX_NODES:
            raise CannotCross("a value is nested too deep or has too many parts")
        if not isinstance(data, list) or not data or not isinstance(data[0], str):
            raise CannotCross("a value has no type")
        tag, parts = data[0], data[1:]
        if tag in ("ref", "module"):
            return self._resolve(data)
        try:
            if tag in ("list", "tuple", "set", "frozenset", "dict"):
                return self._container(tag, parts, depth)
            return _REBUILD[tag](*parts)
        except CannotCross:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CannotCross(f"a value of type {tag[:20]!r} is malformed") from error

    def _container(self, tag: str, parts: list[Json], depth: int) -> object:
        (items,) = parts
        if not isinstance(items, list):
            raise CannotCross(f"a {tag} has no items")
        if tag == "dict":
            pairs = [(self.decode(k, depth + 1), self.decode(v, depth + 1)) for k, v in items]
            return dict(pairs)
        return PLAIN_TYPES[tag]([self.decode(item, depth + 1) for item in items])


def _text(data: Json) -> str:
    if type(data) is not str:
        raise CannotCross("a text is missing")
    return data


def _int(data: Json) -> int:
    if len(_text(data)) > _INT_DIGITS * 8:
        raise CannotCross("a number is too long")
    return int(_text(data), 16)


def _bool(data: Json) -> bool:
    if type(data) is not bool:
        raise CannotCross("a truth value is missing")
    return data


def _bytes(data: Json) -> bytes:
    return base64.b64decode(_text(data), validate=True)


def _type(data: Json) -> type:
    name = _text(data)
    return PLAIN_TYPES.get(name) or EXCEPTIONS[name]


def _numbers(dtype: Json, shape: Json, data: Json) -> tuple[str, tuple[int, ...], bytes]:
    if not _DTYPE.fullmatch(_text(dtype)) or not isinstance(shape, list):
        raise CannotCross("an array has no plain type")
    sizes = tuple(size for size in shape if type(size) is int and size >= 0)
    if len(sizes) != len(shape) or len(sizes) > 16:  # noqa: PLR2004 - dimensions
        raise CannotCross("an array has no shape")
    content = _bytes(data)
    if math.prod(sizes) > len(content):
        raise CannotCross("an array is larger than its data")
    return _text(dtype), sizes, content


def _array(dtype: Json, shape: Json, data: Json) -> object:
    import numpy  # noqa: PLC0415 - only where a value is an array

    kind, sizes, content = _numbers(dtype, shape, data)
    if not content:
        return numpy.zeros(sizes, dtype=kind)
    return numpy.frombuffer(content, dtype=kind).reshape(sizes).copy()


def _scalar(dtype: Json, shape: Json, data: Json) -> object:
    array = _array(dtype, shape, data)
    return array[()]  # type: ignore[index]


_REBUILD: Final[Mapping[str, Callable[..., object]]] = {
    "none": lambda: None,
    "bool": _bool,
    "int": _int,
    "float": lambda text: float.fromhex(_text(text)),
    "complex": lambda re, im: complex(float.fromhex(_text(re)), float.fromhex(_text(im))),
    "str": _text,
    "bytes": _bytes,
    "bytearray": lambda text: bytearray(_bytes(text)),
    "range": lambda start, stop, step: range(_int(start), _int(stop), _int(step)),
    "type": _type,
    "array": _array,
    "scalar": _scalar,
}
