"""A replay in which the discount of each request is decided from outside, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp2, isfinite

from ...errors import InvalidInput
from ...scheduling.model.learned_order import LARGEST_EXPONENT, WEIGHTS, LearnedOrder, features
from ...scheduling.queue.running_set import expected_seconds
from ...scheduling.quota.tree import THOUSAND, size
from ..policies.carrel_policy import CarrelPolicy
from ..workload.job_run import Run
from ..workload.nodes import ONE_POOL
from .event_loop import moments
from .experiment import Experiment, site_of

Observation = tuple[float, ...]
"""The features of a request that a learned order sees (``learned_order.FEATURES``)."""
_SECONDS_OF_HOUR = 3600.0


class OrderEpisode:
    """One replay under Carrel's policy, which stops at each submission for its discount.

    A learned order sees the features of a request and returns the exponent of its discount; here
    the caller does. Requests with equal features have the discount of the first of them, and a
    request that is queued again keeps its own.

    Attributes:
        observation: features of the request to decide on; after the end, those of the last one.
        over: whether all jobs have ended.
    """

    def __init__(self, experiment: Experiment) -> None:
        """Begin the replay of an experiment with one pool.

        Raises:
            InvalidInput: the tenants have nodes of their own, there are no jobs, or one is larger
                than the pool.
        """
        if ONE_POOL not in experiment.pools or not experiment.trace.jobs:
            raise InvalidInput(
                "An episode needs jobs, and one pool.", accepted="Nodes for all tenants, as in 6x8."
            )
        jobs = experiment.trace.jobs
        self._order = _ChosenDiscounts(name="chosen", weights=WEIGHTS * (0.0,))
        self._moments = moments(
            jobs,
            site=site_of(experiment, ONE_POOL, jobs),
            policy=CarrelPolicy(name="chosen", learned_order=self._order),
            estimator=experiment.estimator(),
        )
        self._count = len(jobs)
        self._undecided = deque[Run]()
        self._at = jobs[0].submitted_at
        self._present = 0
        self.over = False
        self.observation: Observation = ()
        self._advance()

    def step(self, exponent: float) -> float:
        """Discount the size of the observed request, and replay up to the next one.

        Args:
            exponent: of two, from 0 (no discount) to 8; what lies outside is cut off.

        Returns:
            The part of the mean completion time (submission to end, in hours) that passes
            meanwhile.

        Raises:
            InvalidInput: the exponent is not finite, or all jobs have ended.
        """
        if self.over or not isfinite(exponent):
            raise InvalidInput(
                "There is no request to discount." if self.over else "The exponent is not finite.",
                accepted=f"A number from 0 to {LARGEST_EXPONENT:g}, until all jobs have ended.",
            )
        self._order.choose(self.observation, exponent)
        self._undecided.popleft()
        return self._advance() / _SECONDS_OF_HOUR / self._count

    def _advance(self) -> float:
        """Go on to the next request; return the seconds that jobs have been in the system."""
        passed = 0.0
        while not self._undecided:
            moment = next(self._moments, None)
            if moment is None:
                self.over = True
                return passed
            passed += self._present * (moment.at - self._at)
            self._at = moment.at
            self._present += len(moment.submitted) - moment.ended
            self._undecided.extend(moment.submitted)
        self.observation = _observed(self._undecided[0])
        return passed


def _observed(run: Run) -> Observation:
    request = run.request
    return features(
        expected_seconds(request),
        size(request.devices, request.share) / THOUSAND,
        request.submitted_at,
        gang=bool(request.gang),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChosenDiscounts(LearnedOrder):
    """Discounts that were chosen for features; the key of a queued request never changes."""

    _exponents: dict[Sequence[float], float] = field(default_factory=dict, compare=False)
    _of_requests: dict[Sequence[float], float] = field(default_factory=dict, compare=False)
    """By the features that a request keeps when it is queued again with less work."""

    def choose(self, values: Observation, exponent: float) -> None:
        kept = self._exponents.setdefault(values, min(LARGEST_EXPONENT, max(0.0, exponent)))
        self._of_requests.setdefault(values[1:], kept)

    def discount(self, values: Sequence[float]) -> float:
        key = tuple(values)
        known = self._exponents.get(key)
        if known is None:
            known = self._exponents[key] = self._of_requests.get(key[1:], 0.0)
        return exp2(known)
