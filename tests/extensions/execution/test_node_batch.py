"""Functions of one node on batches of nodes, by rules for each row, against one node at a time."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ... import torch_packages
from ...property_settings import examples

torch, execution = torch_packages.load()
nn = torch.nn
node_batch = importlib.import_module("carrel.extensions.execution.deferred_calls.node_batch")

NODES = 4
"""As many as a node has numbers: a rule that mixes dimensions up gives another result, no error."""


class Layers(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.words = nn.Embedding(9, 4)
        self.scale = nn.Parameter(torch.randn(4))
        self.one = nn.Parameter(torch.tensor(0.5))


STEPS: dict[str, Callable[[Layers, Any, Any], Any]] = {
    "linear": lambda own, left, right: own.layer(left) - right,
    "pointwise": lambda own, left, right: left.sigmoid() * torch.tanh(right) + own.scale,
    "numbers": lambda own, left, right: 2 * left - right * 0.5 + own.one,
    "reflected": lambda own, left, right: 1 - left + own.scale * right,
    "relu": lambda own, left, right: nn.functional.relu(left) + nn.ReLU()(-right),
    "first dimension": lambda _, left, right: torch.cat([right, left]).chunk(2)[0],
    "last dimension": lambda _, left, right: torch.cat([right, left], -1).chunk(2, -1)[1],
}


class Reversed(torch.autograd.Function):  # type: ignore[misc]
    """The number itself, with the gradient of its negative."""

    @staticmethod
    def forward(_: Any, value: Any) -> Any:
        return value

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        return -gradient


REFUSED: dict[str, Callable[[Layers, Any, Any], Any]] = {
    "type": lambda _, left, right: left if isinstance(right, torch.Tensor) else right,
    "own gradient": lambda _, left, right: left + Reversed.apply(right),
    "shape": lambda _, left, right: left * right.shape[0],
    "size": lambda _, left, right: left * right.size(0),
    "length": lambda _, left, right: left * len(right),
    "reduction": lambda _, left, right: left / right.abs().max().clamp(min=100),
    "softmax": lambda _, left, right: left.softmax(0) + right,
    "dimensions": lambda _, left, right: left * right[0],
    "dtypes": lambda _, left, right: left * torch.ones(4, dtype=torch.float64) + right,
    "larger constant": lambda _, left, right: left + right + torch.ones(4, 4),
    "comparison": lambda _, left, right: left if left != right else right,
    "branch": lambda _, left, right: left if left else right,
    "constant": lambda own, _, __: own.scale,
    "in place": lambda _, left, right: nn.functional.relu(left + right, inplace=True),
    "operator in place": lambda _, left, right: operator.iadd(left + right, 1),
    "random numbers": lambda _, left, right: left + right * torch.rand(4),
    "alpha": lambda _, left, right: torch.add(left, right, alpha=2),
    "dropout": lambda _, left, right: nn.functional.dropout(left + right),
}


def by_node(function: Callable[..., Any], columns: list[Any]) -> Any:
    return torch.stack([function(*row) for row in zip(*columns, strict=True)])


@examples(30, 300)
@given(names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4))
def test_rules_give_the_results_and_gradients_of_one_node_at_a_time(names: list[str]) -> None:
    own = Layers()
    left, right = (torch.randn(NODES, 4, requires_grad=True) for _ in range(2))

    def function(one: Any, other: Any) -> Any:
        for name in names:
            one, other = other, STEPS[name](own, one, other)
        return other

    trained = [left, right, *own.parameters()]
    found = []
    for result in (
        by_node(function, [left, right]),
        node_batch.execute_rows(function, [left, right], [True, True]),
    ):
        gradients = torch.autograd.grad((result**2).sum(), trained, allow_unused=True)
        found.append((result, gradients))
    torch.testing.assert_close(found[1], found[0])


def test_words_are_looked_up_and_an_argument_may_be_the_same_for_all() -> None:
    own = Layers()
    words = torch.tensor([3, 8, 0, 3])

    def function(word: Any, scale: Any) -> Any:
        return own.words(word) * scale

    found = node_batch.execute_rows(function, [words, own.scale], [True, False])
    torch.testing.assert_close(found, own.words(words) * own.scale)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rule_is_refused(name: str) -> None:
    own = Layers()
    columns = [torch.randn(NODES, 4), torch.randn(NODES, 4)]
    with pytest.raises((node_batch.NoRowRule, TypeError)):
        node_batch.execute_rows(lambda *row: REFUSED[name](own, *row), columns, [True, True])


@pytest.mark.parametrize("name", [*node_batch.IN_PLACE_OPERATORS, "setitem"])
def test_no_batch_is_changed_in_place(name: str) -> None:
    assert hasattr(torch.Tensor, f"__{name}__")
    batch = node_batch.NodeBatch(torch.ones(2, 2))
    arguments = (0, 1) if name == "setitem" else (1,)
    with pytest.raises(node_batch.NoRowRule):
        getattr(operator, name)(batch, *arguments)


@pytest.mark.parametrize("inside_module", [True, False])
def test_a_function_with_a_gradient_of_its_own_keeps_it(inside_module: bool) -> None:
    own = Layers()

    class Cell(nn.Module):  # type: ignore[misc]
        def forward(self, left: Any, right: Any) -> Any:
            return own.layer(left) + Reversed.apply(right)

    cell = Cell()

    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return own.words(torch.tensor(tree))
        left, right = function(tree[0]), function(tree[1])
        return cell(left, right) if inside_module else own.layer(left) + Reversed.apply(right)

    trees = [((1, 2), (3, 4)), (5, (6, 7))]
    expected, found = (
        torch.autograd.grad(sum(each.sum() for each in results), own.words.weight)
        for results in (function.plainly([(tree,) for tree in trees]), function.map(trees))
    )
    torch.testing.assert_close(found, expected)
    reason = str(execution.explain(function))
    assert "autograd.Function" in reason
    assert "chosen: plain" in reason


def test_a_branch_on_the_type_of_a_result_is_that_of_a_tensor() -> None:
    layer = nn.Linear(1, 1)

    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return layer(torch.ones(1))
        found = function(tree[0])
        return found if isinstance(found, torch.Tensor) else found * 2

    torch.testing.assert_close(function((1, 2)), layer(torch.ones(1)))


def test_calls_with_zeros_of_both_signs_are_not_one_batch() -> None:
    layer = nn.Linear(1, 1)
    nn.init.ones_(layer.weight)
    zeros = [(0.0,), (-0.0,)]
    division = execution.recursive(lambda tree: torch.div(layer(torch.ones(1)).abs() + 1, tree))
    found = division.in_batches(zeros)
    assert [each.item() for each in found] == [float("inf"), float("-inf")]


@pytest.mark.parametrize("name", ["reduction", "softmax", "shape", "alpha"])
def test_a_recursion_over_what_has_no_rule_has_the_results_of_plain_recursion(name: str) -> None:
    own = Layers()

    class Cell(nn.Module):  # type: ignore[misc]
        def forward(self, left: Any, right: Any) -> Any:
            return REFUSED[name](own, left, right)

    cell = Cell()

    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return own.words(torch.tensor(tree))
        return cell(function(tree[0]), function(tree[1]))

    calls = [(((1, 2), (3, 4)),), ((5, (6, 7)),)]
    plain, batched = function.plainly(calls), function.in_batches(calls)
    torch.testing.assert_close(batched, plain)
