"""Base classes and common types of all bodies.

The validator of a body is built at its first use: a command uses few of 250.
"""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

NAME = r"[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?"
"""Pattern of the names of users and groups."""
LARGEST = 2**53 - 1
"""Upper bound of integers: larger ones are not exact in every JSON reader."""
MODEL_LENGTH = 255
"""Max length of the name of a device model."""
LATEST = 32503679999.0
"""The end of the year 2999: the upper bound of all times.

Python's calendar ends with the year 9999. The distance leaves a margin for spans and time zones.
"""
LONGEST = 100 * 365 * 86400
"""Upper bound of all spans, in seconds: 100 years."""

NO_PARTS = "Only whole devices can be requested: no engine can limit work to part of a device."


def is_part(given: object) -> bool:
    """Return whether the value requests part of a device."""
    try:
        number = float(str(given))
    except ValueError:
        return False
    return isfinite(number) and not number.is_integer()


def _whole(value: object) -> object:
    if isinstance(value, float) and is_part(value):
        raise ValueError(NO_PARTS)
    return value


Devices = Annotated[int, BeforeValidator(_whole)]
"""A number of devices; a request for part of a device is rejected with an explanation."""


Moment = Annotated[float, Field(ge=0, le=LATEST)]
"""A time, in seconds since 1970."""
Span = Annotated[int, Field(ge=0, le=LONGEST)]
"""A number of seconds."""


def _finite(value: JsonValue) -> JsonValue:
    if not is_finite(value):
        raise ValueError("Numbers must be finite: JSON has no NaN and no Infinity.")
    return value


def is_finite(value: JsonValue) -> bool:
    """Return whether all numbers of a JSON value are finite, so that it can be written as JSON."""
    match value:
        case float():
            return isfinite(value)
        case list():
            return all(map(is_finite, value))
        case dict():
            return all(map(is_finite, value.values()))
        case _:
            return True


FiniteJson = Annotated[JsonValue, AfterValidator(_finite)]
"""A JSON value without NaN and Infinity, which the parsers of Python and pydantic accept."""


class In(BaseModel):
    """Base of request bodies: rejects unknown keys and does not convert types."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class Out(BaseModel):
    """Base of response bodies: clients ignore fields that a newer service adds."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)
