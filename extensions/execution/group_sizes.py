"""How many models are executed as one, as candidates of a choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from .choice import ExecutionCandidate

Function = Callable[..., Any]
Compiler = Callable[[Function], Function]

_SIZES: Final = (10, 32)
_SIZES_FOR_LARGE_INPUTS: Final = (2, 10)
_LARGE: Final = 32 << 10
"""Bytes of inputs of a model from which few models fill the caches of a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVariant:
    """A way to execute groups.

    Attributes:
        name: such as ``compiled``; may be empty.
        fused: makes what executes groups of a size.
        build_seconds: the least time that it takes, with a first call.
    """

    name: str = ""
    fused: Callable[[int], Function]
    build_seconds: float = 0.0


def group_sizes(count: int, input_bytes: int = 0) -> list[int]:
    """Return how many of so many models should be executed as one, to be tried.

    Large groups save calls, small ones stay in the caches of the processor. Between half and twice
    as many are tried where that leaves fewer models over.

    Args:
        input_bytes: of one model.
    """
    found = []
    for size in _SIZES_FOR_LARGE_INPUTS if input_bytes >= _LARGE else _SIZES:
        if count <= size:
            found.append(count)
            break
        near = range(size // 2 + 1, min(count, 2 * size) + 1)
        found.append(min(near, key=lambda each: (count % each, abs(each - size))))
    return list(dict.fromkeys(found))


def group_candidates(
    plain: Function, variants: Sequence[GroupVariant], sizes: Sequence[int]
) -> list[ExecutionCandidate]:
    """Return plain execution, and each variant in groups of each size."""
    found = [ExecutionCandidate(name="plain", build=lambda: plain)]
    found += [
        ExecutionCandidate(
            name=", ".join(filter(None, (f"fused in groups of {size}", variant.name))),
            build=partial(variant.fused, size),
            build_seconds=variant.build_seconds,
        )
        for variant in variants
        for size in sizes
    ]
    return found


def not_compiled(function: Function) -> Function:
    return function
