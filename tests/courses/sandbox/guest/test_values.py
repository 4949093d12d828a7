"""Only plain data crosses between a test and a student's kernel, and decoding trusts nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.courses.sandbox.guest.values import CannotCross, Decoder, Encoder

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.frozensets(st.integers(), max_size=4)
    ),
    max_leaves=20,
)


def refuse(*_: object) -> object:
    raise CannotCross("a reference")


def crossed(value: object) -> object:
    data = json.loads(json.dumps(Encoder(refuse).encode(value)))  # type: ignore[arg-type]
    return Decoder(refuse).decode(data)


@given(PLAIN)
def test_plain_values_are_decoded_as_they_were_encoded(value: object) -> None:
    out = crossed(value)
    assert out == value
    assert type(out) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array(2.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["a", "äb"]),
        np.arange(10)[::2],
    ],
)
def test_arrays_of_plain_numbers_cross(array: np.ndarray) -> None:
    out = crossed(array)
    assert isinstance(out, np.ndarray)
    assert out.dtype == array.dtype
    np.testing.assert_array_equal(out, array)


def test_elements_of_arrays_and_builtin_types_cross() -> None:
    out = crossed([np.float64(1.5), np.int32(3), int, ValueError, range(3), {1, 2}])
    assert out == [1.5, 3, int, ValueError, range(3), {1, 2}]
    assert isinstance(out, list)
    assert type(out[0]) is np.float64


class _Equal(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def _deep() -> object:
    value: object = 1
    for _ in range(100):
        value = [value]
    return value


def _circle() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda: _Equal(1),
        lambda: [_Equal(1)],
        lambda: np.array([object()]),
        lambda: len,
        _deep,
        _circle,
        lambda: list(range(300_000)),
        lambda: "x" * (9 << 20),
        lambda: np.zeros(2_000_000),
    ],
    ids=["own type", "within", "objects", "function", "deep", "circle", "many", "long", "array"],
)
def test_other_values_do_not_cross(make: Callable[[], object]) -> None:
    with pytest.raises(CannotCross):
        crossed(make())


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        [1],
        ["nothing"],
        ["int", 5],
        ["int"],
        ["int", "0x1", "0x2"],
        ["float", "zz"],
        ["bool", 1],
        ["str", 3],
        ["bytes", "*"],
        ["list", "ab"],
        ["set", [["list", []]]],
        ["dict", [["int", "0x1"]]],
        ["type", "Popen"],
        ["type", "SystemExit"],
        ["array", "|O", [1], "AAAA"],
        ["array", "<f8", [1 << 40], ""],
        ["array", "<f8", [-1], "AAAA"],
        ["array", "<f8", [2], "AAAA"],
        ["array", "<f8", "2", "AAAA"],
        ["range", "0x0", "0x5", "0x0"],
        ["__import__", "os"],
    ],
    ids=str,
)
def test_a_forged_value_is_refused(data: object) -> None:
    with pytest.raises(CannotCross):
        Decoder(refuse).decode(data)  # type: ignore[arg-type]
