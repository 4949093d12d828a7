"""Quantiles of run times of which some are only lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable

Observation = tuple[float, bool]
"""Seconds, and whether they are censored: only a lower bound."""


def survival_quantile(observations: Iterable[Observation], share: float) -> float:
    """Return the time by which this share of runs has ended; infinite where that is not known.

    The product-limit estimator (Kaplan and Meier, "Nonparametric estimation from incomplete
    observations", JASA 53, 1958): a censored run counts among those at risk until its end and
    never as an ended one.
    """
    # At equal times, what ended comes before what was stopped.
    ordered = sorted(observations)
    survival = 1.0
    for number, (seconds, censored) in enumerate(ordered):
        if not censored:
            survival *= 1.0 - 1.0 / (len(ordered) - number)
            if survival <= 1.0 - share + 1e-12:
                return seconds
    return math.inf


def imputed_seconds(bound: float, observations: Iterable[Observation]) -> float:
    """Return the likely seconds of a run that was stopped after ``bound`` seconds.

    The median of the runs that took longer; without any, twice the bound, which is what the
    scheduler expects of a run that outlives its estimate.
    """
    longer = [each for each in observations if each[0] > bound]
    middle = survival_quantile(longer, 0.5)
    return middle if math.isfinite(middle) else 2.0 * bound
