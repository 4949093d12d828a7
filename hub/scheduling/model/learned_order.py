"""A learned order: weights that discount the size of a request among those of its owner.

The score is a polynomial of degree two in five features of the request; the features and the
discount are those of docs/explanation/learned-order.md. A discount makes no request larger, so the
bound against starvation of rule 5 (``queue.queues``) holds with any weights.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import cos, exp2, isfinite, log2, pi, sin
from typing import Self

from ...errors import InvalidInput

FEATURES = ("runtime", "devices", "nodes", "hour_sin", "hour_cos")
_PAIRS = tuple(combinations_with_replacement(range(len(FEATURES)), 2))
WEIGHTS = 1 + len(FEATURES) + len(_PAIRS)
"""Number of weights: of the constant, the features, and their products of two."""
LARGEST_EXPONENT = 8.0
LARGEST_WEIGHT = 1000.0
LARGEST_FEATURE = 2.0
_DAY = 86400.0
_FORMAT = 1
_LONGEST = 100_000


def features(
    seconds: float, devices: float, submitted_at: float, *, gang: bool
) -> tuple[float, ...]:
    """Return the features of a request, each between -2 and 2.

    Args:
        seconds: expected runtime that is left.
        devices: number of devices, a share in proportion.
        submitted_at: seconds since the epoch (UTC).
        gang: whether it has several members.
    """
    hour = 2 * pi * (submitted_at % _DAY) / _DAY
    return (
        min(LARGEST_FEATURE, log2(1 + max(0.0, seconds)) / 10 - 1),
        min(LARGEST_FEATURE, log2(1 + devices) / 4),
        float(gang),
        sin(hour),
        cos(hour),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedOrder:
    """The weights of a learned order.

    Attributes:
        name: name of its file, without the ending.
        weights: of the constant, the features, and their products of two.
    """

    name: str
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raises InvalidInput for a wrong number of weights, and for weights out of range."""
        if len(self.weights) != WEIGHTS:
            raise _refused(f"it has {len(self.weights):,} weights")
        if not all(isfinite(each) and abs(each) <= LARGEST_WEIGHT for each in self.weights):
            raise _refused("a weight is not finite, or out of range")

    def score(self, values: Sequence[float]) -> float:
        """Return the score of a request with these features."""
        weights = self.weights
        products = [values[one] * values[other] for one, other in _PAIRS]
        terms = zip(weights[1:], (*values, *products), strict=True)
        return weights[0] + sum(weight * term for weight, term in terms)

    def discount(self, values: Sequence[float]) -> float:
        """Return by how much the device-seconds of such a request are divided: 1 to 256."""
        return exp2(min(LARGEST_EXPONENT, max(0.0, self.score(values))))

    def as_json(self, **trained: object) -> str:
        """Return the content of a file.

        Args:
            trained: how it was trained, for readers.
        """
        content = {
            "format": _FORMAT,
            "features": FEATURES,
            "weights": self.weights,
            "trained": trained,
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, name: str, content: str | bytes) -> Self:
        """Parse the content of a file. Raises InvalidInput for a damaged one."""
        if len(content) > _LONGEST:
            raise _refused("it is too long")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise _refused("it is not JSON") from None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise _refused("it is of another format")
        if found.get("features") != [*FEATURES]:
            raise _refused("it has other features")
        weights = found.get("weights")
        if not isinstance(weights, list) or not all(map(_is_number, weights)):
            raise _refused("its weights are not numbers")
        return cls(name=name, weights=tuple(map(float, weights)))


def _is_number(value: object) -> bool:
    """Whether it is a number that a float can hold: JSON has integers of any length."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) <= LARGEST_WEIGHT


def _refused(why: str) -> InvalidInput:
    return InvalidInput(
        f"The learned order cannot be used: {why}.",
        accepted=f"A file with format {_FORMAT} and {WEIGHTS} weights between "
        f"-{LARGEST_WEIGHT:,.0f} and {LARGEST_WEIGHT:,.0f}, as the training writes it.",
    )
