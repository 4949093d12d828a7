"""Say how something is executed, and why: ``execution.explain``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ...hub.errors import InvalidInput
from .choice import ExecutionChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionExplanation:
    """The choices of one function or group of models.

    Attributes:
        choices: by what was executed, such as a group of models and the shapes of the inputs.
        notes: what was not chosen by time: models set apart, and why; what runs plainly.
    """

    choices: Mapping[str, ExecutionChoice] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{name}\n{choice}" for name, choice in self.choices.items()]
        return "\n".join([*parts, *self.notes]) or "Nothing was executed yet: make a call first."


@runtime_checkable
class Explained(Protocol):
    """What ``explain`` accepts."""

    def explanation(self) -> ExecutionExplanation: ...


def explain(executed: object) -> ExecutionExplanation:
    """Return how something is executed; ``print`` shows it.

    Raises:
        InvalidInput: it was not made by this package.
    """
    if not isinstance(executed, Explained):
        raise InvalidInput(
            f"There is no explanation of {type(executed).__name__}.",
            accepted="Pass what a function of carrel.execution returned, such as fuse(models).",
        )
    return executed.explanation()
