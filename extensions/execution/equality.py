"""Compare the result of another way of execution with that of plain execution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Final

import torch

TOLERANCE: Final = {
    torch.float64: 1e-10,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
    torch.complex128: 1e-10,
    torch.complex64: 1e-5,
}
"""Largest difference of two elements, as a part of the largest finite element of the plain tensor.

Sums in another order differ by a few units in the last place of the largest term, so that a small
element beside large ones may differ by more than its own last places.
"""


def difference(plain: object, other: object, *, labels: bool = False, where: str = "") -> str:
    """Return the first difference as a sentence; empty where both are equal within the tolerance.

    Tensors must agree in shape, dtype and device; NaN and infinity in their places; integers,
    booleans and everything that is not a tensor exactly.

    Args:
        labels: the largest element along the last dimension must be at the same index, too.
        where: a prefix that says which part of the result is compared.
    """
    place = where or "the result"
    if isinstance(plain, torch.Tensor) and isinstance(other, torch.Tensor):
        return _tensor_difference(plain, other, labels=labels, place=place)
    if type(plain) is not type(other):
        return f"{place} is {_kind(other)} instead of {_kind(plain)}"
    if isinstance(plain, Mapping) and isinstance(other, Mapping):
        if list(plain) != list(other):
            return f"{place} has the keys {list(other)} instead of {list(plain)}"
        pairs = [(f"{place}[{key!r}]", plain[key], other[key]) for key in plain]
    elif isinstance(plain, list | tuple) and isinstance(other, list | tuple):
        if len(plain) != len(other):
            return f"{place} has {len(other)} elements instead of {len(plain)}"
        pairs = [
            (f"{place}[{index}]", *both)
            for index, both in enumerate(zip(plain, other, strict=True))
        ]
    elif is_dataclass(plain):
        pairs = [
            (f"{place}.{field.name}", getattr(plain, field.name), getattr(other, field.name))
            for field in fields(plain)
        ]
    else:
        same = _same_number(plain, other) if isinstance(plain, float) else _equal(plain, other)
        return "" if same else f"{place} is {_short(other)} instead of {_short(plain)}"
    found = (difference(one, two, labels=labels, where=at) for at, one, two in pairs)
    return next((sentence for sentence in found if sentence), "")


def _tensor_difference(
    plain: torch.Tensor, other: torch.Tensor, *, labels: bool, place: str
) -> str:
    for name, one, two in (
        ("shape", tuple(plain.shape), tuple(other.shape)),
        ("dtype", plain.dtype, other.dtype),
        ("device", plain.device, other.device),
    ):
        if one != two:
            return f"{place} has the {name} {two} instead of {one}"
    plain, other = plain.detach(), other.detach()
    tolerance = TOLERANCE.get(plain.dtype)
    if tolerance is None:
        return "" if torch.equal(plain, other) else f"{place} has other values"
    if not plain.numel():
        return ""
    finite = torch.isfinite(plain)
    if not torch.equal(finite, torch.isfinite(other)):
        return f"{place} is NaN or infinite at other elements"
    if not torch.equal(torch.nan_to_num(plain[~finite]), torch.nan_to_num(other[~finite])):
        return f"{place} has NaN where plain execution has infinity, or the reverse"
    left, right = plain[finite], other[finite]
    if left.numel():
        # Each in a precision in which the difference of two large values does not overflow.
        wide = torch.complex128 if left.is_complex() else torch.float64
        left, right = left.to(wide), right.to(wide)
        furthest = float((left - right).abs().max())
        largest = float(left.abs().max())
        if furthest > tolerance * largest:
            part = furthest / largest if largest else math.inf
            return f"{place} differs by {part:.1e} of its largest value ({tolerance:.0e} allowed)"
    if labels and plain.dim() and not torch.equal(plain.argmax(-1), other.argmax(-1)):
        return f"{place} has other labels"
    return ""


def _same_number(plain: float, other: object) -> bool:
    assert isinstance(other, float)
    return plain == other or (math.isnan(plain) and math.isnan(other))


def _equal(plain: object, other: object) -> bool:
    try:
        return bool(plain == other)
    except (RuntimeError, TypeError, ValueError):
        return False


def _kind(value: object) -> str:
    return type(value).__name__


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"  # noqa: PLR2004
