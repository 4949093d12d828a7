"""Common base of all bodies."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

NAME = r"[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?"
"""Names of users and groups."""
LARGEST = 2**53 - 1
"""Larger whole numbers are not exact in every JSON reader."""
MODEL_LENGTH = 255
"""Max length of the name of a device model."""
LATEST = 253402300799.0
"""The end of the year 9999, the last year of calendars."""

NO_PARTS = "Only whole devices are lent: no engine can hold anybody to part of one yet."


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
"""A number of devices; requests for part of a device get an explanation."""


class In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Out(BaseModel):
    """Clients ignore fields that a newer service adds."""

    model_config = ConfigDict(extra="ignore", frozen=True)
