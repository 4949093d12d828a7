"""What is typed into one field of a form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...errors import InvalidInput

T = TypeVar("T")


def read(reader: Callable[[str], T], text: str, field: str) -> T:
    """Raises InvalidInput, naming the field."""
    try:
        return reader(text)
    except InvalidInput as error:
        error.field = field
        raise
