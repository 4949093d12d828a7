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
_NOT_CHECKED: Final = (
    "it was faster than batch {smaller} by more than the batch is larger. This was not checked, "
    "because batch {smaller} could not be measured again in the time left: it is not recommended."
)
_PRESENT: Final = (
    "The present batch {present} is faster than batch {smaller} by more than it is larger, and may "
    "train nothing: compare it with the size of your data."
)
_PRESENT_NOT_CHECKED: Final = (
    "The present batch {present} was faster than batch {smaller} by more than it is larger. This "
    "was not checked, because batch {smaller} could not be measured again in the time left."
)


def check_gain(
    measured: list[ProbeMeasurement],
    measure: Callable[[ProbeSetting], ProbeMeasurement],
    seconds_left: Callable[[], float],
) -> str:
    """Mark the last measurement as failed if its gain over the next smaller batch is too large.

    The smaller batch is measured again before that, because it may have been slow by chance. In
    the time of a probe that has ended, the gain is only said to be unchecked.

    Args:
        measure: measures the rate of a setting.
        seconds_left: returns the time for further measurements.

    Returns:
        A sentence if the first setting is the one to doubt; it is not marked.
    """
    last = measured[-1]
    if last.problem:
        return ""

    def again(smaller: ProbeMeasurement) -> ProbeMeasurement | None:
        """Return another measurement in place of that of a setting; None: there is none."""
        found = measure(smaller.setting) if seconds_left() > 0 else None
        if found is None or not found.rate:
            return None
        measured[measured.index(smaller)] = found
        return found

    smaller = next_smaller(measured, last.setting)
    if smaller is not None and gains_too_much(smaller, last):
        checked = again(smaller)
        if gains_too_much(checked or smaller, last):
            text = _NOT_CHECKED if checked is None else _PROBLEM
            problem = text.format(smaller=smaller.setting.batch)
            measured[-1] = replace(last, rate=0.0, problem=problem)
    start = measured[0]
    if next_smaller(measured, start.setting) is last and gains_too_much(last, start):
        checked = again(last)
        if gains_too_much(checked or last, start):
            text = _PRESENT_NOT_CHECKED if checked is None else _PRESENT
            return text.format(present=start.setting.batch, smaller=last.setting.batch)
    return ""
