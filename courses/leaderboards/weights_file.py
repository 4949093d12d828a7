"""Read the header of a safetensors file, with bounds, before anything else of the file is used.

The format (https://github.com/huggingface/safetensors#format) is eight bytes with the length of the
header, the header as JSON, and the tensors one after the other. The header names each tensor with
its dtype, shape and place. Nothing in such a file is executed. The program in the grading sandbox
has this module too, so that it imports only the standard library and ``hub.errors``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Final

from ...hub.errors import InvalidInput

ITEM_BYTES: Final = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
"""Bytes of one number, by dtype."""
MOST_HEADER_BYTES: Final = 1 << 20
MOST_TENSORS: Final = 10_000
_LENGTH_BYTES: Final = 8
_MOST_DIMENSIONS: Final = 16
_LONGEST_NAME: Final = 500
_LARGEST: Final = 1 << 48
_PLACE: Final = ("begin", "end")
_METADATA: Final = "__metadata__"
_ACCEPTED: Final = (
    'Write it with: safetensors.torch.save_file(model.state_dict(), "weights.safetensors")'
)
_PICKLES: Final = (b"\x80", b"PK\x03\x04")
"""How pickles begin: alone, and in the archive of torch.save. Read as the length of a header, their
first eight bytes are more than is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One tensor of a file: its numbers are the bytes from ``begin`` to before ``end``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def stored_tensors(content: bytes) -> list[StoredTensor]:
    """Return what a file holds, without its numbers.

    Raises:
        InvalidInput: the file is a pickle, truncated, or no safetensors file; the message says so
            to the student.
    """
    if len(content) < _LENGTH_BYTES:
        raise _refused(f"The file has {len(content)} bytes: it is empty or truncated.")
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    if length > MOST_HEADER_BYTES and content.startswith(_PICKLES):
        raise _refused(
            "The file is a pickle, as torch.save writes it. A pickle can execute code, so it is "
            "never loaded."
        )
    if length > _LARGEST:
        raise _refused("The file is not a safetensors file: it does not begin with a header.")
    if length > MOST_HEADER_BYTES:
        raise _refused(
            f"The file is not a safetensors file: its header would have {length} bytes, and "
            f"{MOST_HEADER_BYTES} are accepted."
        )
    start = _LENGTH_BYTES + length
    if len(content) < start:
        raise _refused("The file is truncated: it ends in its header.")
    tensors = [
        _tensor(name, found, start)
        for name, found in _header(content[_LENGTH_BYTES:start]).items()
        if name != _METADATA
    ]
    _check_places(tensors, start, len(content))
    return tensors


def _header(data: bytes) -> dict[str, object]:
    try:
        found = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _refused("The file is not a safetensors file: its header is not a JSON object.")
    if len(found) > MOST_TENSORS:
        raise _refused(f"The file has {len(found)} tensors; {MOST_TENSORS} are accepted.")
    return found


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a name that is there twice: readers differ in which of the two they use."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice")
    return found


def _tensor(name: str, found: object, start: int) -> StoredTensor:
    told = repr(name[:80])
    if not isinstance(found, dict) or len(name) > _LONGEST_NAME or not name.isprintable():
        raise _refused(f"The header of the file is damaged at the tensor {told}.")
    dtype = found.get("dtype")
    shape, place = _sizes(found.get("shape")), _sizes(found.get("data_offsets"))
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        shown = dtype if isinstance(dtype, str) and dtype.isprintable() else ascii(dtype)
        raise _refused(
            f"The tensor {told} has the dtype {shown[:40]}; accepted are {', '.join(ITEM_BYTES)}."
        )
    if shape is None or place is None or len(place) != len(_PLACE):
        raise _refused(f"The header of the file is damaged at the tensor {told}.")
    begin, end = place
    # The product of an empty tensor is 0, whatever its other dimensions are.
    if prod(max(1, each) for each in shape) > _LARGEST:
        raise _refused(f"The shape of the tensor {told} is too large.")
    if end - begin != prod(shape) * ITEM_BYTES[dtype]:
        raise _refused(f"The tensor {told} has another number of bytes than its shape needs.")
    return StoredTensor(name=name, dtype=dtype, shape=shape, begin=start + begin, end=start + end)


def _sizes(found: object) -> tuple[int, ...] | None:
    if not isinstance(found, list) or len(found) > _MOST_DIMENSIONS:
        return None
    if not all(type(each) is int and 0 <= each <= _LARGEST for each in found):
        return None
    return tuple(found)


def _check_places(tensors: list[StoredTensor], start: int, size: int) -> None:
    """Raise InvalidInput unless the tensors fill the file, without gaps and overlaps."""
    if not tensors:
        raise _refused("The file has no tensor.")
    ordered = sorted(tensors, key=lambda each: (each.begin, each.end))
    last = ordered[-1].end
    if last > size:
        raise _refused(f"The file is truncated: it has {size} bytes, and its header tells {last}.")
    gaps = any(one.end != two.begin for one, two in pairwise(ordered))
    if gaps or ordered[0].begin != start or last != size:
        raise _refused("The tensors of the file overlap, or there are bytes between or after them.")


def _refused(sentence: str) -> InvalidInput:
    return InvalidInput(sentence, accepted=_ACCEPTED, field="files")
