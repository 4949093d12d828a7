"""What all values on the wire have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

NAME = r"[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?"
"""Names of people and groups."""
LARGEST = 2**53 - 1
"""Whole numbers above it are not the same in every JSON reader."""
MODEL_LENGTH = 255
"""Of the name of a device model."""
LATEST = 253402300799.0
"""The end of the year 9999, where calendars end."""


class In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Out(BaseModel):
    """Clients ignore fields that a newer service adds."""

    model_config = ConfigDict(extra="ignore", frozen=True)
