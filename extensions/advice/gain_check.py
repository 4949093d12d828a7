"""Reject a larger batch that is faster than it can be: its run may have trained nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...hub.insight.probes.search import gains_too_much, next_smaller
from ...hub.insight.probes.settings import ProbeMeasurement, ProbeSetting

_PROBLEM: Final = (
    "it was faster than batch {smaller} by more than the batch is larger, and may have trained "
    "nothing: the batch can be larger than the data."
)


def check_gain(
    measured: list[ProbeMeasurement], measure: Callable[[ProbeSetting], ProbeMeasurement]
) -> str:
    """Mark the last measurement as failed if its gain over the next smaller batch is too large.

    The smaller batch is measured again before that, because it may have been slow by chance.

    Args:
        measure: measures the rate of a setting.

    Returns:
        A sentence if the first setting is the one to doubt; it is not marked.
    """
    last = measured[-1]
    if last.problem:
        return ""
    smaller = next_smaller(measured, last.setting)
    if smaller is not None and gains_too_much(smaller, last):
        again = measure(smaller.setting)
        if again.rate:
            measured[measured.index(smaller)] = smaller = again
        if gains_too_much(smaller, last):
            problem = _PROBLEM.format(smaller=smaller.setting.batch)
            measured[-1] = replace(last, rate=0.0, problem=problem)
    start = measured[0]
    if next_smaller(measured, start.setting) is last and gains_too_much(last, start):
        return (
            f"The present batch {start.setting.batch} is faster than batch {last.setting.batch} by "
            "more than it is larger, and may train nothing: compare it with the size of your data."
        )
    return ""
