"""Boosted regression trees as plain values: evaluated without the library that fitted them.

A model is stored as JSON and evaluated here by standard-library code, so that a damaged or foreign
file can do nothing but be refused, and the service imports no library for machine learning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Self

from ..errors import InvalidInput

LEAF = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionTree:
    """One tree; node 0 is the root.

    Attributes:
        feature: the feature that a node compares, ``LEAF`` for a leaf.
        threshold: a value up to this goes to the left.
        left, right: the children of a node; they come after it.
        unknown_left: whether NaN goes to the left.
        value: of a leaf.
    """

    feature: Sequence[int]
    threshold: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]
    unknown_left: Sequence[bool]
    value: Sequence[float]

    def evaluate(self, features: Sequence[float]) -> float:
        node = 0
        while (feature := self.feature[node]) != LEAF:
            seen = features[feature]
            goes_left = self.unknown_left[node] if seen != seen else seen <= self.threshold[node]  # noqa: PLR0124  # only NaN differs from itself
            node = self.left[node] if goes_left else self.right[node]
        return self.value[node]

    def as_json(self) -> dict[str, object]:
        return {name: list(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_json(cls, values: object, columns: int) -> Self:
        """Load that form. Raises InvalidInput for a tree that could not be evaluated."""
        if not isinstance(values, Mapping) or set(values) != set(cls.__slots__):
            raise _damaged("A tree lacks fields.")
        lists = [values[name] for name in cls.__slots__]
        if not all(isinstance(each, list) and len(each) == len(lists[0]) for each in lists):
            raise _damaged("The lists of a tree differ in length.")
        tree = cls(**dict(zip(cls.__slots__, lists, strict=True)))
        tree._check(columns)
        return tree

    def _check(self, columns: int) -> None:
        count = len(self.feature)
        if not count:
            raise _damaged("A tree is empty.")
        for node in range(count):
            feature = self.feature[node]
            numbers = (self.threshold[node], self.value[node])
            whole = (feature, self.left[node], self.right[node])
            if not all(type(each) is int for each in whole):
                raise _damaged("A number of a node is not whole.")
            if not all(isinstance(each, int | float) and math.isfinite(each) for each in numbers):
                raise _damaged("A value of a tree is not a finite number.")
            inside = LEAF <= feature < columns
            # Children come after their parent, so that an evaluation ends.
            ahead = feature == LEAF or all(node < child < count for child in whole[1:])
            if not inside or not ahead:
                raise _damaged("A node of a tree points outside.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostedTrees:
    """The sum of a constant and of all trees."""

    base: float
    trees: Sequence[RegressionTree]

    def evaluate(self, features: Sequence[float]) -> float:
        return self.base + sum(
            map(RegressionTree.evaluate, self.trees, repeat(features, len(self.trees)))
        )

    def as_json(self) -> dict[str, object]:
        return {"base": self.base, "trees": [tree.as_json() for tree in self.trees]}

    @classmethod
    def from_json(cls, values: object, columns: int) -> Self:
        """Load that form. Raises InvalidInput."""
        if not isinstance(values, Mapping):
            raise _damaged("There are no trees.")
        base, trees = values.get("base"), values.get("trees")
        if not isinstance(base, int | float) or not math.isfinite(base):
            raise _damaged("The base is not a finite number.")
        if not isinstance(trees, list):
            raise _damaged("There are no trees.")
        return cls(base=base, trees=[RegressionTree.from_json(tree, columns) for tree in trees])


def _damaged(what: str) -> InvalidInput:
    return InvalidInput(
        f"The model of run times is damaged: {what}", accepted="A model that the service wrote."
    )
