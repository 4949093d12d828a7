"""Execute many pipelines on one input, each equal step once."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .fitted_steps import FittedPipeline
from .stacked_classifiers import StackedClassifiers

Results = dict[str, Any]
"""Results by the names of pipelines; an exception where execution raised one."""


def plainly(pipelines: Sequence[FittedPipeline], inputs: Any, method: str) -> Results:
    """Return the result of each pipeline, executed on its own."""
    return {each.name: _result(each, inputs, method) for each in pipelines}


def with_shared_steps(
    pipelines: Sequence[FittedPipeline],
    inputs: Any,
    method: str,
    stacks: Mapping[tuple[str, ...], StackedClassifiers],
) -> Results:
    """Return the result of each pipeline; what begins equally is executed once.

    Linear classifiers of a stack get their scores from one product for each block of rows.

    What several steps read cannot be written to: a step that tries raises, and its pipeline must be
    executed plainly.
    """
    readers = Counter(key for each in pipelines for key in _prefixes(each))
    done: dict[tuple[str, ...], Any] = {}
    stacked: dict[tuple[str, ...], Results] = {}
    members = _members(pipelines, method, stacks)
    found: Results = {}

    def scored(keys: tuple[str, ...], features: Any) -> Any:
        """Return the result of a member of a stack; those of all are computed for its first."""
        *_, key = keys
        before = keys[:-1]
        if before not in stacked:
            stacked[before] = stacks[before].results(features, method, members[before])
        return stacked[before].pop(key)

    for each in pipelines:
        try:
            value = inputs
            for step, key in zip(each.steps[:-1], _prefixes(each), strict=False):
                if key not in done:
                    done[key] = step.transform(each.own(value) if value is inputs else value)
                    if readers[key] > 1:
                        done[key] = _protected(done[key], inputs)
                value = done[key]
            if each.keys in done:
                found[each.name] = copy.copy(done[each.keys])
            else:
                value = each.own(value) if value is inputs else value
                if each.keys[-1] in members.get(each.keys[:-1], ()):
                    found[each.name] = scored(each.keys, value)
                else:
                    found[each.name] = getattr(each.steps[-1], method)(value)
                if readers[each.keys] > 1:
                    done[each.keys] = copy.copy(found[each.name])
        except Exception as error:  # what a step of a user may raise
            found[each.name] = error
        for key in _prefixes(each):
            readers[key] -= 1
            if not readers[key]:
                done.pop(key, None)
                stacked.pop(key, None)
    return found


def _members(
    pipelines: Sequence[FittedPipeline],
    method: str,
    stacks: Mapping[tuple[str, ...], StackedClassifiers],
) -> dict[tuple[str, ...], set[str]]:
    """Return the last steps that a stack executes, by the steps before them."""
    members: dict[tuple[str, ...], set[str]] = {}
    for each in pipelines:
        before, key = each.keys[:-1], each.keys[-1]
        if before in stacks and stacks[before].has(key, method):
            members.setdefault(before, set()).add(key)
    return members


def _prefixes(pipeline: FittedPipeline) -> list[tuple[str, ...]]:
    return [pipeline.keys[: number + 1] for number in range(len(pipeline.keys))]


def _protected(value: Any, inputs: Any) -> Any:
    """Return a value that cannot be written to; the caller's own rows stay writable."""
    import numpy as np  # noqa: PLC0415 # where it is used

    given = _arrays(inputs)
    if value is inputs or any(
        np.may_share_memory(part, other) for part in _arrays(value) for other in given
    ):
        value = copy.deepcopy(value)
    for part in _arrays(value):
        part.setflags(write=False)
    return value


def _arrays(value: Any) -> list[Any]:
    parts = (value, *(getattr(value, name, None) for name in ("data", "indices", "indptr")))
    return [part for part in parts if hasattr(part, "setflags")]


def _result(pipeline: FittedPipeline, inputs: Any, method: str) -> Any:
    try:
        return pipeline.execute(inputs, method)
    except Exception as error:  # what a step of a user may raise
        return error
