"""Execute the function of one node on a batch of nodes, by rules of functions for each row.

``vmap`` does the same for any function, at some microseconds an operation. The rules here cover
what cells of trees are made of; where a function uses anything else, ``NoRowRule`` is raised, and
``vmap`` takes the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

_UNARY: Final = ("sigmoid", "tanh", "relu", "exp", "sin", "cos", "neg", "abs", "square")
_BINARY: Final = ("add", "sub", "mul")
IN_PLACE_OPERATORS: Final = (
    "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor",
    "ilshift", "irshift",
)  # fmt: skip
"""Those that tensors have: with others, such as ``@=``, Python makes a new tensor."""


class NoRowRule(BaseException):
    """There is no rule for what the function does with a batch of nodes.

    It is no ``Exception``, so that a function which handles those does not go on with another one.
    """


def execute_rows(function: Callable[..., Any], columns: list[Any], batched: list[bool]) -> Any:
    """Return the results of a function for all rows of its arguments.

    Args:
        batched: which arguments have a row for each node; the others are the same for all.

    Raises:
        NoRowRule: the function does something for which there is no rule.
    """
    args = [
        pytree.tree_map(NodeBatch, column) if rows else column
        for column, rows in zip(columns, batched, strict=True)
    ]
    before = torch.get_rng_state()
    results = pytree.tree_map(_rows_of, function(*args))
    if not torch.equal(before, torch.get_rng_state()):
        # Each node has random numbers of its own.
        torch.set_rng_state(before)
        raise NoRowRule("random numbers")
    return results


class NodeBatch:
    """Stands for the tensor of one node; holds those of many, one a row.

    What would need the tensor of one node, such as its shape, raises ``NoRowRule``.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Refuse ``isinstance``, which a tensor would answer in another way.

        With a false answer, functions in C would read its memory as that of a tensor;
        ``torch.autograd.Function.apply`` asks, too, and would lose the gradient.
        """
        raise NoRowRule("the type of a tensor")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        rule = _RULES.get(function)
        if rule is None:
            raise NoRowRule(getattr(function, "__name__", "a function"))
        return rule(*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        rule = _RULES.get(getattr(torch.Tensor, name))
        if rule is None:
            raise NoRowRule(name)
        return lambda *args, **kwargs: rule(self, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        raise NoRowRule("==")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise NoRowRule("the value of a tensor")

    def __len__(self) -> int:
        raise NoRowRule("len")


def _rows_of(value: Any) -> torch.Tensor:
    if type(value) is not NodeBatch:
        raise NoRowRule("a result that is the same for all nodes")
    return value.rows


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., NodeBatch]:
    def rule(value: Any, *, inplace: bool = False) -> NodeBatch:
        if inplace:
            raise NoRowRule("inplace")
        return NodeBatch(function(_rows_of(value)))

    return rule


def _binary(function: Callable[..., torch.Tensor]) -> Callable[..., NodeBatch]:
    def rule(one: Any, other: Any) -> NodeBatch:
        return NodeBatch(function(*_aligned(one, other)))

    return rule


def _aligned(one: Any, other: Any) -> tuple[Any, Any]:
    """Return operands whose dimensions meet as those of one node do."""
    if type(one) is NodeBatch:
        left = one.rows
        if type(other) is NodeBatch:
            right = other.rows
            if left.ndim == right.ndim and left.dtype == right.dtype:
                return left, right
        elif type(other) in (int, float) or _same_for_all(other, left):
            return left, other
    elif type(one) in (int, float) or _same_for_all(one, other.rows):
        return one, other.rows
    raise NoRowRule("operands of several dimensions or dtypes")


def _same_for_all(value: Any, rows: torch.Tensor) -> bool:
    known = type(value) in (torch.Tensor, torch.nn.Parameter)
    return known and value.ndim < rows.ndim and value.dtype == rows.dtype


def _linear(value: Any, weight: Any, bias: Any = None) -> NodeBatch:
    rows = _rows_of(value)
    known = type(weight) is not NodeBatch and type(bias) is not NodeBatch
    if not known or rows.ndim == 1 or (bias is not None and bias.ndim > 1):
        raise NoRowRule("linear")
    return NodeBatch(functional.linear(rows, weight, bias))


def _embedding(value: Any, weight: Any, **options: Any) -> NodeBatch:
    # Frequencies of words, and norms that are written to the weights, depend on the whole batch.
    whole = options.get("scale_grad_by_freq") or options.get("max_norm") is not None
    if whole or type(weight) is NodeBatch:
        raise NoRowRule("embedding")
    return NodeBatch(functional.embedding(_rows_of(value), weight, **options))


def _cat(tensors: Any, dim: int = 0) -> NodeBatch:
    rows = [_rows_of(each) for each in tensors]
    if any(each.ndim != rows[0].ndim for each in rows):
        raise NoRowRule("cat")
    return NodeBatch(torch.cat(rows, _dimension(rows[0], dim)))


def _chunk(value: Any, chunks: int, dim: int = 0) -> tuple[NodeBatch, ...]:
    rows = _rows_of(value)
    return tuple(map(NodeBatch, rows.chunk(chunks, _dimension(rows, dim))))


def _dimension(rows: torch.Tensor, dim: int) -> int:
    """Return the dimension of a batch that is this one of a node."""
    own = rows.ndim - 1
    if not -own <= dim < own:
        raise NoRowRule("a dimension that a node does not have")
    return dim if dim < 0 else dim + 1


def _all_rules() -> Mapping[Any, Callable[..., Any]]:
    rules: dict[Any, Callable[..., Any]] = {
        functional.linear: _linear, functional.embedding: _embedding,
        torch.cat: _cat, torch.chunk: _chunk, torch.Tensor.chunk: _chunk,
    }  # fmt: skip
    for name in _UNARY:
        for owner in (torch, torch.Tensor, functional):
            if hasattr(owner, name):
                rules[getattr(owner, name)] = _unary(getattr(torch, name))
    for name in _BINARY:
        for owner in (torch, torch.Tensor):
            rules[getattr(owner, name)] = _binary(getattr(torch, name))
        rules[getattr(torch.Tensor, f"__{name}__")] = _binary(getattr(torch, name))
    return rules


_RULES: Final = _all_rules()


def _add_methods() -> None:
    """Give the class the methods for which there are rules: faster than looking each one up."""
    for name in (*_UNARY, "chunk", *_BINARY):
        setattr(NodeBatch, name, _RULES[getattr(torch.Tensor, name)])
    for name in ("neg", "abs"):
        setattr(NodeBatch, f"__{name}__", _RULES[getattr(torch.Tensor, name)])
    for name in _BINARY:
        rule = _RULES[getattr(torch.Tensor, name)]
        setattr(NodeBatch, f"__{name}__", rule)
        setattr(NodeBatch, f"__r{name}__", lambda self, other, rule=rule: rule(other, self))

    for name in (*IN_PLACE_OPERATORS, "setitem"):
        # Without these, Python would make a new batch, and other names would keep the old one.
        setattr(NodeBatch, f"__{name}__", _in_place)


def _in_place(_value: NodeBatch, *_others: Any) -> NodeBatch:
    raise NoRowRule("a change in place")


_add_methods()
