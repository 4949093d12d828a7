"""Judge a validation against the past of the device and the validations of its siblings.

The idea is that of SuperBench (USENIX ATC 2024): a device that became slower shows when it is
compared with itself and with others, long before it fails.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...interfaces.devices import ValidationReading

LEAST_PAST: Final = 3
LEAST_SIBLINGS: Final = 2
OWN_LOSS: Final = 0.07
SIBLING_LOSS: Final = 0.10
"""A device that is slower by more than these shares does not pass."""
_WITH_OTHERS: Final = frozenset({"collective"})
"""Tests whose rates depend on how many devices were measured together: they are not compared."""
_OWN_PAST: Final = frozenset({"copies"})
"""Tests whose rates depend on where a device is in its node: siblings may differ when in order."""

Rates = Mapping[str, float]


def validation_failures(
    reading: ValidationReading, past: Sequence[Rates], siblings: Sequence[Rates]
) -> tuple[str, ...]:
    """Return why a device does not pass, as sentences; none if it passes.

    Args:
        past: what the device reached in earlier validations that it passed.
        siblings: what devices of the same model on the same node reached in their last ones.
    """
    if reading.problem:
        return (reading.problem,)
    return tuple(_slower(reading.rates, past, siblings))


def _slower(rates: Rates, past: Sequence[Rates], siblings: Sequence[Rates]) -> Iterator[str]:
    for test, rate in sorted(rates.items()):
        if not math.isfinite(rate) or rate <= 0:
            yield f"The test {test} has measured {rate}."
            continue
        for known, least, loss, whose in (
            (past, LEAST_PAST, OWN_LOSS, "its own before"),
            (siblings, LEAST_SIBLINGS, SIBLING_LOSS, "that of its siblings"),
        ):
            if test in _WITH_OTHERS or (known is siblings and test in _OWN_PAST):
                continue
            values = [each[test] for each in known if _sound(each.get(test))]
            if len(values) < least:
                continue
            usual = statistics.median(values)
            if rate < (1 - loss) * usual:
                share = 100 * (1 - rate / usual)
                yield f"Validation: {test} is {share:.0f} % slower than {whose}."
                break


def _sound(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
