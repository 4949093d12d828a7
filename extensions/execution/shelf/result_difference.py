"""Compare predictions of another way of execution with those of plain execution."""

from __future__ import annotations

from typing import Any, Final

PROBABILITY_TOLERANCE: Final = 1e-3
"""Largest difference of two probabilities: ONNX computes in single precision."""
_EXACT: Final = 1e-10
"""Largest difference, as a part of the largest value, where the same code computes both."""


def prediction_difference(plain: Any, other: Any) -> str:
    """Return the first difference of arrays of one shared and one plain execution.

    Args:
        plain, other: arrays, or dicts of arrays by the names of pipelines.
    """
    return _difference(plain, other, tolerance=_EXACT)


def probability_difference(plain: Any, other: Any) -> str:
    """Return the first difference of labels, or of probabilities beyond their tolerance."""
    return _difference(plain, other, tolerance=PROBABILITY_TOLERANCE)


def _difference(plain: Any, other: Any, *, tolerance: float) -> str:
    import numpy as np  # noqa: PLC0415 # where it is used

    if isinstance(plain, dict):
        found = (
            f"{name}: {sentence}"
            for name in plain
            if (sentence := _difference(plain[name], other[name], tolerance=tolerance))
        )
        return next(found, "")
    if type(plain) is not type(other):
        return f"the result is {type(other).__name__} instead of {type(plain).__name__}"
    if hasattr(plain, "toarray"):
        plain, other = plain.toarray(), other.toarray()
    if not isinstance(plain, np.ndarray):
        same = isinstance(plain, list | tuple) and len(plain) == len(other)
        if not same:
            return "" if _equal(plain, other) else "the result is another one"
        parts = (_difference(*both, tolerance=tolerance) for both in zip(plain, other, strict=True))
        return next(filter(None, parts), "")
    if plain.shape != other.shape or plain.dtype != other.dtype:
        one, two = (f"{each.dtype} of the shape {each.shape}" for each in (plain, other))
        return f"the result is {two} instead of {one}"
    if plain.dtype.kind not in "fc":
        return "" if np.array_equal(plain, other) else "the result has other labels"
    if not plain.size:
        return ""
    scale = 1.0 if tolerance == PROBABILITY_TOLERANCE else float(np.nanmax(np.abs(plain)))
    if not np.allclose(other, plain, rtol=0, atol=tolerance * scale, equal_nan=True):
        return f"the result differs by {np.nanmax(np.abs(other - plain)):.1e}"
    return ""


def _equal(plain: object, other: object) -> bool:
    try:
        return bool(plain == other)
    except (TypeError, ValueError):
        return False
