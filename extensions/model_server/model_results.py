"""Check what a model returns for rows, and say what it raised."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Set
from typing import Any

from ...hub.errors import CarrelError


class UnusableResult(CarrelError):
    """A model returned what cannot be the answer to a call: its fault, not that of the caller."""

    code = "unusable_result"


class ModelFailed(CarrelError):
    """A model raised an error."""

    code = "model_failed"


def checked(found: Any, count: int) -> list[Any]:
    """Return the results of a model. Raises UnusableResult unless there is one a row."""
    accepted = "One result a row, in the same order, as a list or an array."
    if inspect.iscoroutine(found):
        found.close()
    # A data frame gives the names of its columns, a mapping its keys.
    many = any(hasattr(type(found), name) for name in ("__iter__", "__getitem__"))
    scalar = not many or getattr(found, "shape", None) == ()
    if scalar or isinstance(found, Mapping | Set | str | bytes) or hasattr(found, "columns"):
        raise UnusableResult(
            f"The model returned {type(found).__name__} for rows.", accepted=accepted
        )
    results = list(found)
    if len(results) != count:
        raise UnusableResult(
            f"The model returned {len(results)} results for {count} rows.", accepted=accepted
        )
    return results


def raised(error: BaseException) -> str:
    """Return the kind of an error and its text, which the user's own class may fail to give."""
    try:
        text = str(error)
    except Exception:  # as above
        text = ""
    return f"{type(error).__name__}: {text}".removesuffix(": ")
