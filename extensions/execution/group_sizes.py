"""How many models are executed as one, as candidates of a choice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from .choice import COMPILATION_SECONDS, ExecutionCandidate
from .compilation import CountedCompilation

Function = Callable[..., Any]
Compiler = Callable[[Function], Function]

_SIZES: Final = (10, 32)
"""Sizes to be tried; between half and twice as many where that leaves fewer models over."""


def group_sizes(count: int) -> list[int]:
    """Return how many of so many models should be executed as one, to be tried.

    Large groups save calls, small ones stay in the caches of the processor.
    """
    found = []
    for size in _SIZES:
        if count <= size:
            found.append(count)
            break
        near = range(size // 2 + 1, min(count, 2 * size) + 1)
        found.append(min(near, key=lambda each: (count % each, abs(each - size))))
    return list(dict.fromkeys(found))


def group_candidates(
    plain: Function,
    fused: Callable[[int, Compiler], Function],
    count: int,
    *,
    compiled: bool = True,
) -> list[ExecutionCandidate]:
    """Return plain execution of so many models, and groups of several sizes.

    Args:
        fused: makes what executes groups of a size, compiled by the second argument.
        compiled: whether compiled groups are candidates.
    """
    sizes = group_sizes(count)
    found = [ExecutionCandidate(name="plain", build=lambda: plain)]
    found += [
        ExecutionCandidate(
            name=f"fused in groups of {size}", build=partial(fused, size, _not_compiled)
        )
        for size in sizes
    ]
    found += [
        ExecutionCandidate(
            name=f"fused in groups of {size}, compiled",
            build=partial(fused, size, CountedCompilation),
            build_seconds=COMPILATION_SECONDS,
        )
        for size in (sizes if compiled else ())
    ]
    return found


def _not_compiled(function: Function) -> Function:
    return function
