"""Forty imperative functions of tensors: dynamic flow, changing types, and side effects.

Tests and the benchmark execute each by ``accelerate`` and plainly, and compare results, what was
printed, and all state that a function can change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SIZE = 65_536
SCALE = 0.5
SETTINGS = {"steps": 4, "scale": 0.25}
LOG: list[Any] = []
COUNTS: dict[str, int] = {}
TOTAL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImperativeFunction:
    """One function.

    Attributes:
        pure: whether it has no side effects.
        arguments: of one call, by its number.
    """

    function: Callable[..., Any]
    pure: bool
    arguments: Callable[[int], tuple[Any, ...]]


def vector(call: int) -> tuple[Any, ...]:
    """Return a vector whose sign changes between calls, so that branches on data go both ways."""
    numbers = torch.Generator().manual_seed(call)
    found = torch.randn(SIZE, generator=numbers).abs() + 0.1
    return (found if call % 3 else -found,)


def _wave(values: Any) -> Any:
    return (values * 0.5 + 1.0).clamp(-2, 2).mul(2.0).sub(0.5).clamp(-1, 1).add(0.1).abs().sqrt()


# -- flow that depends on data or on Python values ------------------------------------------------


def branch_on_sum(values: Any) -> Any:
    values = _wave(values)
    if values.mean() > 0.9:
        return (values * 2 + 1).clamp(-1, 1).mul(0.3).add(0.2)
    return (values - 1).clamp(-2, 2).mul(3.0).sub(1.0)


def branch_on_item(values: Any) -> Any:
    mean = values.mean().item()
    factor = 2.0 if mean > 0 else -0.5
    return _wave(values * factor) + _wave(values)


def branch_elementwise(values: Any) -> Any:
    return torch.where(values > 0, _wave(values), values * 0.1).clamp(-1, 1).add(1).square()


def nested_branches(values: Any) -> Any:
    values = _wave(values)
    largest = values.max()
    if largest > 0.5:
        if values.min() < 0.3:
            return (values * 3).clamp(-1, 1).sub(0.1).mul(0.5)
        return values.square().mul(2).sub(0.5)
    return values.neg()


def loop_over_range(values: Any) -> Any:
    for step in range(4):
        values = (values * SCALE + step).clamp(-2, 2).mul(1.5).sub(0.2)
    return values


def loop_over_layers(values: Any) -> Any:
    weights = [0.9, 0.8, 0.7, 0.6, 0.5]
    for index, weight in enumerate(weights):
        values = torch.tanh(values * weight) + index
        values = values.mul(0.5).abs().sqrt()
    return values


def while_on_count(values: Any) -> Any:
    left = 6
    while left:
        values = (values * 0.9).neg().add(0.1)
        left -= 1
    return values


def while_on_data(values: Any) -> Any:
    while values.abs().max() > 1:
        values = values / 2
    return _wave(values)


def early_exit(values: Any) -> Any:
    for step in range(8):
        values = (values * 0.5).clamp(-1, 1).add(0.05)
        if step == 5:
            break
    else:
        return values
    return values.mul(2.0).sub(1.0).abs()


def exception_inside(values: Any) -> Any:
    try:
        scale = 1 / (len(values) - SIZE)
    except ZeroDivisionError:
        scale = 0.5
    return _wave(values * scale).mul(0.3).square()


def recursion(values: Any) -> Any:
    def halve(part: Any, depth: int) -> Any:
        if depth == 0:
            return part.clamp(-2, 2).mul(2).clamp(-1, 1)
        return halve((part * 0.5).add(0.1).abs(), depth - 1)

    return halve(values, 5)


def comprehension(values: Any) -> Any:
    parts = [(values * scale).clamp(-1, 1).mul(0.5).add(0.1) for scale in (0.1, 0.2, 0.3, 0.4)]
    return sum(parts)


def condition_by_torch(values: Any) -> Any:
    return torch.cond(
        values.sum() > 0,
        lambda x: (x * 0.5).clamp(-2, 2).mul(2).clamp(-1, 1),
        lambda x: (x - 1).abs().sqrt().square(),
        (values,),
    )


def assertion(values: Any) -> Any:
    assert values.dim() == 1
    return _wave(values).mul(0.5).add(0.2).clamp(-1, 1)


# -- types and containers -------------------------------------------------------------------------


def returns_other_types(values: Any, form: str) -> Any:
    values = _wave(values)
    if form == "list":
        return [values, values.mul(2).clamp(-1, 1)]
    if form == "number":
        return float(values.mul(2).clamp(-1, 1).sum())
    return {"values": values, "double": values.mul(2).clamp(-1, 1)}


def changing_dtypes(values: Any) -> Any:
    return (values.abs() * 0.5).add(0.25).sqrt().mul(0.9).clamp(-1, 1)


def changing_lengths(many: list[Any]) -> Any:
    total = torch.zeros(SIZE)
    for values in many:
        total += (values * 0.5).clamp(-2, 2).mul(0.3)
    return total.clamp(-1, 1).add(0.1)


def own_list(values: Any) -> Any:
    found = []
    for step in range(5):
        found.append((values * step).clamp(-2, 2).mul(0.5).add(0.1))
    return torch.stack(found).sum(0)


def own_dictionary(values: Any) -> Any:
    found = {}
    for name in ("a", "b", "c"):
        found[name] = (values + len(found)).clamp(-1, 1).mul(0.5).add(0.3)
    found["sum"] = found["a"] + found["b"] * found["c"]
    return found


def writes_to_a_copy(values: Any) -> Any:
    values = values.clone()
    values[: SIZE // 2] = 0
    values += 1
    return _wave(values)


def nested_tuples(pair: Any) -> Any:
    (first, second), scale = pair
    return ((first * scale).clamp(-1, 1).add(0.1), (second * scale).clamp(-2, 2).sub(0.2)), scale


def number_or_tensor(value: Any) -> Any:
    if isinstance(value, float):
        return math.tanh(value)
    return (value * 0.5).clamp(-2, 2).mul(0.4).clamp(-1, 1).add(0.1)


def text_argument(values: Any, name: str = "tanh") -> Any:
    functions = {"tanh": torch.tanh, "sin": torch.sin}
    return functions[name](values * 0.5).mul(0.3).add(0.1).abs().sqrt()


def slices(values: Any) -> Any:
    left, right = values[::2], values[1::2]
    return torch.cat([(left * right).clamp(-1, 1).mul(0.5), (left - right).clamp(-2, 2).add(0.1)])


def reads_globals(values: Any) -> Any:
    for step in range(SETTINGS["steps"]):  # type: ignore[call-overload]
        values = (values * SETTINGS["scale"]).neg().add(step)
    return values.mul(0.5).clamp(-1, 1)


def closure() -> Callable[..., Any]:
    scale, shift = torch.linspace(0, 1, SIZE), 0.25

    def scaled(values: Any) -> Any:
        return ((values + shift) * scale).clamp(-1, 1).mul(0.5).clamp(-2, 2).sub(0.1)

    return scaled


class Gate(nn.Module):  # type: ignore[misc]
    """A module with a branch on data and a list of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.LayerNorm(64) for _ in range(3))
        self.scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, values: Any) -> Any:
        rows = values.reshape(-1, 64)
        for layer in self.layers:
            rows = layer(rows).clamp(-1, 1) * self.scale
        return rows


def step_by_step(values: Any) -> Any:
    state, momentum = values, torch.zeros_like(values)
    for _ in range(3):
        momentum = momentum * 0.9 + state.clamp(-1, 1)
        state = state - momentum * 0.1
    return state, momentum


# -- side effects ---------------------------------------------------------------------------------


def prints(values: Any) -> Any:
    values = _wave(values)
    print("called with", len(values))
    return values


def prints_data(values: Any) -> Any:
    if values.sum() > 0:
        print("positive")
    return _wave(values)


def appends_to_argument(values: Any, found: list[Any]) -> Any:
    found.append(len(found))
    return _wave(values)


def appends_to_global(values: Any) -> Any:
    LOG.append(float(values[0]))
    return _wave(values)


def counts_in_global(values: Any) -> Any:
    global TOTAL  # noqa: PLW0603 # as users write
    TOTAL += 1
    return _wave(values) * TOTAL


def counts_in_dictionary(values: Any) -> Any:
    COUNTS["calls"] = COUNTS.get("calls", 0) + 1
    return _wave(values) + COUNTS["calls"]


def counts_in_closure() -> Callable[..., Any]:
    calls = 0

    def counted(values: Any) -> Any:
        nonlocal calls
        calls += 1
        return _wave(values) * calls

    return counted


def changes_argument(values: Any) -> Any:
    values += 1
    return _wave(values)


def writes_to_argument(values: Any) -> Any:
    values[0] = 0
    return _wave(values)


def draws_random_numbers(values: Any) -> Any:
    return _wave(values) + torch.rand(SIZE)


def consumes_iterator(values: Any, steps: Any) -> Any:
    return _wave(values) * next(steps)


class Counter(nn.Module):  # type: ignore[misc]
    """A module that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, values: Any) -> Any:
        self.calls += 1
        return _wave(values) * self.calls


def functions() -> Mapping[str, ImperativeFunction]:
    """Return the forty functions by name, with new closures and modules."""
    pure: dict[str, Callable[..., Any]] = {
        each.__name__: each
        for each in (
            branch_on_sum, branch_on_item, branch_elementwise, nested_branches, loop_over_range,
            loop_over_layers, while_on_count, while_on_data, early_exit, exception_inside,
            recursion, comprehension, condition_by_torch, assertion, returns_other_types,
            changing_dtypes, changing_lengths, own_list, own_dictionary, writes_to_a_copy,
            nested_tuples, number_or_tensor, text_argument, slices, reads_globals, step_by_step,
        )
    } | {"closure": closure(), "gate": Gate().eval()}  # fmt: skip
    impure: dict[str, Callable[..., Any]] = {
        each.__name__: each
        for each in (
            prints, prints_data, appends_to_argument, appends_to_global, counts_in_global,
            counts_in_dictionary, changes_argument, writes_to_argument, draws_random_numbers,
            consumes_iterator,
        )
    } | {"counts_in_closure": counts_in_closure(), "counter": Counter().eval()}  # fmt: skip
    found = dict.fromkeys(pure, True) | dict.fromkeys(impure, False)
    return {
        name: ImperativeFunction(
            function=(pure if is_pure else impure)[name],
            pure=is_pure,
            arguments=_ARGUMENTS.get(name, vector),
        )
        for name, is_pure in found.items()
    }


def state(arguments: tuple[Any, ...], function: Callable[..., Any]) -> list[Any]:
    """Return copies of all state that the functions can change."""
    seen = [each.clone() if isinstance(each, torch.Tensor) else each for each in arguments]
    seen = [list(each) if isinstance(each, list) else each for each in seen]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    calls = getattr(function, "calls", 0)
    return [
        [each for each in seen if isinstance(each, torch.Tensor | list)],
        [each for each in cells if isinstance(each, int)],
        calls, list(LOG), dict(COUNTS), TOTAL, torch.get_rng_state(),
    ]  # fmt: skip


def reset() -> None:
    """Set the global state to its beginning."""
    global TOTAL  # noqa: PLW0603 # the same
    LOG.clear()
    COUNTS.clear()
    TOTAL = 0
    torch.manual_seed(0)


_ARGUMENTS: Mapping[str, Callable[[int], tuple[Any, ...]]] = {
    "returns_other_types": lambda call: (*vector(call), ("list", "number", "dict")[call % 3]),
    "changing_dtypes": lambda call: (vector(call)[0].to((torch.float32, torch.float64)[call % 2]),),
    "changing_lengths": lambda call: ([*vector(call)] * (2 + call % 2),),
    "nested_tuples": lambda call: (((*vector(call), *vector(call + 1)), 0.5),),
    "number_or_tensor": lambda call: (0.5,) if call % 4 == 0 else vector(call),
    "text_argument": lambda call: (*vector(call), ("tanh", "sin")[call % 2]),
    "appends_to_argument": lambda call: (*vector(call), []),
    "consumes_iterator": lambda call: (*vector(call), iter([0.5, 0.25])),
}
