"""Recursive functions in batches of nodes against plain recursion."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput

from ... import torch_packages
from ...property_settings import examples

torch, execution = torch_packages.load()
nn = torch.nn

trees = st.recursive(
    st.integers(0, 9), lambda inner: st.tuples(inner, inner) | st.tuples(inner), max_leaves=12
)


class Cell(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * width, 3 * width)

    def forward(self, left: Any, right: Any) -> Any:
        (h1, c1), (h2, c2) = left, right
        forget, enter, out = self.gates(torch.cat([h1, h2])).chunk(3)
        state = forget.sigmoid() * c1 + enter.tanh() + c2
        return out.sigmoid() * state.tanh(), state


class Encoder(nn.Module):  # type: ignore[misc]
    """Modules, functions of torch, operators and tuples at a node, and a kind with one child."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 3)
        self.cell = Cell()
        self.scale = nn.Parameter(torch.tensor(0.5))

    def plain(self, tree: Any) -> Any:
        return self.node(tree, self.plain)

    def node(self, tree: Any, again: Any) -> Any:
        if isinstance(tree, int):
            word = self.words(torch.tensor(tree))
            return torch.tanh(word), word * 2
        if len(tree) == 1:
            hidden, state = again(tree[0])
            return hidden * self.scale + 1, torch.cat([state[:1], state[1:]])
        return self.cell(again(tree[0]), again(tree[1]))


def both(encoder: Encoder, forest: list[Any], way: str) -> tuple[Any, Any]:
    """Return results and gradients of plain recursion and of the other way."""
    function = execution.recursive(lambda tree: encoder.node(tree, function))
    calls = [(tree,) for tree in forest]
    found = []
    for results in ([encoder.plain(tree) for tree in forest], getattr(function, way)(calls)):
        total = sum((hidden.sum() + (state**2).sum() for hidden, state in results), torch.zeros(()))
        gradients = torch.autograd.grad(total, list(encoder.parameters()), allow_unused=True)
        found.append((results, gradients))
    return found[0], found[1]


@examples(20, 200)
@given(forest=st.lists(trees, min_size=1, max_size=5))
def test_random_trees_have_the_results_and_gradients_of_plain_recursion(forest: list[Any]) -> None:
    plain, batched = both(Encoder().double(), forest, "in_batches")
    for expected, found in zip(plain, batched, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def leaf_sum(kind: Any) -> Any:
    layer = nn.Linear(1, 1)

    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return layer(torch.tensor([float(tree)]))
        total = again(tree[0])
        for child in tree[1:]:
            total = total + again(child)
        return total

    again = kind(function)
    return again


def test_one_tree_and_many_are_chosen_by_themselves_and_explained() -> None:
    function = leaf_sum(execution.recursive)
    forest = [((1, 2), 3), 4, (5, (6, 7))] * 4
    with torch.no_grad():
        many = function.map(forest)
        alone = [function(tree) for tree in forest]
    torch.testing.assert_close(many, alone)
    names = list(execution.explain(function).choices)
    assert names == ["8 trees or more, without gradients", "one tree, without gradients"]
    assert function.map([]) == []


def test_methods_and_a_state_that_is_handed_down_are_batched() -> None:
    class Downwards(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        @execution.recursive
        def encode(self, tree: Any, state: Any) -> Any:
            own = self.layer(state)
            if isinstance(tree, int):
                return own + tree
            return torch.stack([self.encode(child, own) for child in tree]).sum(0)

    model = Downwards().double()
    start = torch.ones(3, dtype=torch.float64)
    forest = [((1, 2), 3), (4, 5)]
    recursion = Downwards.encode
    calls = [(model, tree, start) for tree in forest]
    batched, plain = recursion.in_batches(calls), recursion.plainly(calls)
    torch.testing.assert_close(batched, plain)
    torch.testing.assert_close(model.encode.map(forest, start), plain)


def test_a_branch_on_a_value_recurses_plainly_and_it_is_said() -> None:
    layer = nn.Linear(1, 1)

    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return layer(torch.tensor([float(tree)]))
        left = function(tree[0])
        return left if left > 0 else function(tree[1])

    found = function(((1, 2), 3))
    assert found.shape == (1,)
    (choice,) = execution.explain(function).choices.values()
    assert choice.chosen == "plain"
    assert "a branch depends on the value of a tensor" in choice.results[1].reason


def test_a_function_without_tensors_and_errors_of_the_caller_are_as_without_it() -> None:
    @execution.recursive
    def size(tree: Any) -> int:
        return 1 if isinstance(tree, int) else sum(size(child) for child in tree)

    assert size.map([(1, (2, 3)), 4]) == [3, 1]
    function = leaf_sum(execution.recursive)
    for _ in range(2):
        with pytest.raises(TypeError, match="not subscriptable"):
            function((1, None))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InvalidInput, match="int cannot be called"):
        execution.recursive(3)


def test_a_cycle_is_refused() -> None:
    tree: list[Any] = [1]
    tree.append(tree)
    with pytest.raises(InvalidInput, match="contains itself"):
        leaf_sum(execution.recursive)(tree)


@pytest.mark.parametrize("way", ["plainly", "in_batches"])
def test_a_depth_of_ten_thousand_is_executed_with_gradients(way: str) -> None:
    tree: Any = 1
    for _ in range(10_000):
        tree = (tree,)
    layer = nn.Linear(1, 1)

    @execution.recursive
    def function(node: Any) -> Any:
        if isinstance(node, int):
            return layer(torch.tensor([float(node)]))
        return function(node[0]) + 1

    (found,) = getattr(function, way)([(tree,)])
    torch.testing.assert_close(found, layer(torch.tensor([1.0])) + 10_000)
    found.sum().backward()
    assert layer.weight.grad.item() == 1


@pytest.mark.parametrize("depth", [1, 3_000])
def test_autocast_holds_at_any_depth(depth: int) -> None:
    tree: Any = 1
    for _ in range(depth):
        tree = (tree,)
    layer = nn.Linear(1, 1)

    @execution.recursive
    def function(node: Any) -> Any:
        return layer(torch.ones(1)) if isinstance(node, int) else function(node[0])

    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        (found,) = function.plainly([(tree,)])
    assert (found.dtype, found.is_inference()) == (torch.bfloat16, True)


def test_modules_of_other_code_are_called_as_before() -> None:
    layer = nn.Linear(2, 2)
    expected = layer(torch.ones(2))
    function = leaf_sum(execution.recursive)
    function.map([(1, 2), 3])
    torch.testing.assert_close(layer(torch.ones(2)), expected)


HOOKS: dict[str, Callable[[Any, list[int]], Any]] = {
    "forward": lambda layer, called: layer.register_forward_hook(lambda *_: called.append(1)),
    "backward": lambda layer, called: layer.register_full_backward_hook(
        lambda *_: called.append(1)
    ),
    "of all modules": lambda _, called: nn.modules.module.register_module_forward_hook(
        lambda *_: called.append(1)
    ),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_modules_with_hooks_recurse_plainly(kind: str) -> None:
    layer = nn.Linear(1, 1)
    called: list[int] = []
    inputs = torch.ones(1, requires_grad=True)

    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return layer(inputs)
        return function(tree[0]) + function(tree[1])

    handle = HOOKS[kind](layer, called)
    try:
        function((1, 2))
        called.clear()
        function((1, 2)).sum().backward()
    finally:
        handle.remove()
    assert called == [1, 1]
    (choice,) = execution.explain(function).choices.values()
    assert " hook" in choice.results[1].reason


def write_out(hidden: Any) -> Any:
    return torch.add(hidden, 1, out=torch.empty(1))


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (lambda hidden: hidden.add_(1), "add_ writes to a tensor"),
        (lambda hidden: nn.functional.relu(hidden, inplace=True), "relu writes to a tensor"),
        (nn.ReLU(inplace=True), "ReLU with inplace=True writes"),
        (write_out, "add writes to a tensor"),
        (lambda hidden: operator.iadd(hidden, 1), "__iadd__ writes"),
        (lambda hidden: operator.iadd(torch.ones(1), hidden), "writes to a tensor"),
        (lambda hidden: hidden if hidden == 3 else hidden + 1, "a branch depends on"),
        (lambda hidden: hidden if hidden != 3 else hidden + 1, "a branch depends on"),
    ],
)
def test_what_writes_to_tensors_or_compares_values_recurses_plainly(use: Any, reason: str) -> None:
    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return torch.sin(torch.full((1,), float(tree)))
        return use(torch.cos(nn.Identity()(function(tree[0]))))

    with torch.no_grad():
        function(((1,),))
    (choice,) = execution.explain(function).choices.values()
    assert reason in choice.results[1].reason


def test_tensors_that_the_caller_computed_get_gradients_after_the_choice() -> None:
    words, layer = nn.Embedding(4, 3), nn.Linear(3, 3)
    states = (words(torch.arange(4)) * 2).unbind()

    @execution.recursive
    def function(tree: Any) -> Any:
        if isinstance(tree, int):
            return layer(states[tree])
        return function(tree[0]) * function(tree[1])

    function(((0, 1), (2, 3))).sum().backward()
    assert words.weight.grad.abs().sum() > 0
