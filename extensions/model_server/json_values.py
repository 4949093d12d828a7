"""Convert results of models to JSON: NumPy's values become Python's own, NaN is refused."""

from __future__ import annotations

import json
from typing import Any


def dumped(value: object) -> str:
    """Return a value as JSON.

    Raises:
        TypeError: a part of it is no value of JSON.
        ValueError: a part of it is NaN or infinite, or contains itself.
    """
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of JSON")
