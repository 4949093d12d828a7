"""Answers questions of plain data from a snapshot of the student's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from .plain import Json


def answer(namespace: dict[str, object], question: Json) -> Json:
    """``[name]`` is a value, ``[name, argument, …]`` the result of a call."""
    name, *arguments = cast("Sequence[Json]", question)
    found = namespace[str(name)]
    return cast("Json", found(*arguments) if callable(found) else found)
