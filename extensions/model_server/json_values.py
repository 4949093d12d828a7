"""Convert rows from JSON and results to it: NumPy's values become Python's own, NaN is refused."""

from __future__ import annotations

import json
import math
from typing import Any, Final

_TOO_LONG: Final = "integer string conversion"
"""A part of Python's sentence about integers with more digits than it converts."""


def dumped(value: object) -> str:
    """Return a value as JSON.

    Raises:
        TypeError: a part of it is no value of JSON.
        ValueError: a part of it is NaN or infinite, contains itself, or is nested too deeply.
    """
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        if "Out of range" in str(error):
            raise ValueError("a number in it is NaN or infinite") from error
        if _TOO_LONG in str(error):
            raise ValueError("an integer in it has too many digits") from error
        raise


def parsed(text: bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError, also for NaN and infinite numbers."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except ValueError as error:
        if _TOO_LONG in str(error):
            raise ValueError("an integer in it has too many digits") from error
        raise


def _no_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text:.40} is too large")
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON has no {type(value).__name__}")
