"""Headers of safetensors files: good ones are read, and each bad one is a sentence."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.courses.leaderboards.weights_file import StoredTensor, stored_tensors
from carrel.hub.errors import InvalidInput

from .weights_samples import PERFECT, a_pickle, linear, safetensors, with_header

GOOD = linear(*PERFECT)
ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
EMPTY = {"dtype": "F32", "shape": [1 << 40, 1 << 40, 0], "data_offsets": [4, 4]}


def test_a_good_file_is_read() -> None:
    two = safetensors({"a": ((2,), (1, 2)), "b.weight": ((0, 3), ()), "c": ((), (3,))})
    start = len(two) - 12
    assert stored_tensors(two) == [
        StoredTensor(name="a", dtype="F32", shape=(2,), begin=start, end=start + 8),
        StoredTensor(name="b.weight", dtype="F32", shape=(0, 3), begin=start + 8, end=start + 8),
        StoredTensor(name="c", dtype="F32", shape=(), begin=start + 8, end=start + 12),
    ]


def test_a_header_may_begin_as_a_pickle_does() -> None:
    for length in (0x80, 0x280):
        text = b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'.ljust(length)
        assert len(stored_tensors(struct.pack("<Q", length) + text + bytes(4))) == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (a_pickle(), "is a pickle"),
        (b"PK\x03\x04" + bytes(100), "is a pickle"),
        (b"", "empty or truncated"),
        (b"#!/bin/sh\necho hello", "it does not begin with a header"),
        (struct.pack("<Q", 10 << 30) + b"{", "its header would have 10737418240 bytes"),
        (struct.pack("<Q", 100) + b"{", "it ends in its header"),
        (GOOD[:-1], "is truncated"),
        (GOOD + b"more", "bytes between or after"),
        (with_header([1]), "not a JSON object"),
        (with_header({}), "has no tensor"),
        (with_header({"a": 1}), "damaged at the tensor 'a'"),
        (with_header({"a": ONE, "b": ONE}, bytes(4)), "overlap"),
        (with_header({"a": ONE | {"dtype": "F8_E4M3"}}, bytes(4)), "the dtype F8_E4M3"),
        (with_header({"a": ONE | {"dtype": ["F32"]}}, bytes(4)), "accepted are F64"),
        (with_header({"a": ONE | {"shape": [-1]}}, bytes(4)), "damaged"),
        (with_header({"a": ONE | {"shape": [True]}}, bytes(4)), "damaged"),
        (with_header({"a": ONE | {"shape": [2]}}, bytes(4)), "another number of bytes"),
        (with_header({"a": ONE | {"data_offsets": [0, 10 << 30], "shape": [10 << 28]}}, bytes(4)),
         "its header tells 10737418"),
        (with_header({"a": ONE | {"shape": [1] * 20}}, bytes(4)), "damaged"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "not a JSON object"),
        (with_header({f"t{n}": ONE for n in range(10_001)}, bytes(4)), "has 10001 tensors"),
        (with_header({"\ud800": ONE}, bytes(4)), "damaged"),
        (with_header({"a\0": ONE}, bytes(4)), "damaged"),
        (with_header({"a": ONE | {"dtype": "\ud800"}}, bytes(4)), "the dtype '\\ud800'"),
        (with_header({"a": ONE, "b": EMPTY}, bytes(4)), "The shape of the tensor 'b' is too large"),
        (struct.pack("<Q", 17) + b'{"a": 1, "a": 2 }', "not a JSON object"),
    ],
)  # fmt: skip
def test_a_bad_file_is_a_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        stored_tensors(content)
    assert sentence in refused.value.message


@given(st.binary(max_size=200), st.integers(0, len(GOOD)))
def test_damage_never_raises_anything_else(noise: bytes, place: int) -> None:
    for content in (noise, GOOD[:place] + noise + GOOD[place:], GOOD[:place] + noise):
        try:
            found = stored_tensors(content)
        except InvalidInput:
            continue
        assert all(each.end <= len(content) for each in found)
