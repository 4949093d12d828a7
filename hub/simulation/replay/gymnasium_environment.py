"""The simulator as an environment of Gymnasium (extra ``carrel[gymnasium]``).

An agent decides what a learned order decides: the discount of each request, from its features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

if find_spec("gymnasium") is None:
    raise ModuleNotFoundError(
        "The environment needs Gymnasium. Install it with: pip install 'carrel[gymnasium]'",
        name="gymnasium",
    )

import gymnasium
import numpy as np

from ...errors import InvalidInput
from ...scheduling.model.learned_order import FEATURES, LARGEST_EXPONENT, LARGEST_FEATURE
from ..workload.jobs import Trace
from ..workload.nodes import parse_nodes
from .experiment import Experiment, Pools
from .order_episode import OrderEpisode
from .runtime_estimates import parse_estimates

_MOST_SEEDS = 2**31


class QueueOrderEnvironment(gymnasium.Env):  # type: ignore[misc]
    """Discounts of requests in the queue of a simulated pool.

    A step decides on one request, at its submission. The observation has its five features
    (expected runtime, devices, several nodes, and the hour as sine and cosine; each between -2 and
    2), the action is the exponent of the discount of its size, 0 to 8. The reward is minus the mean
    completion time (submission to end, in hours) that passes up to the next request: the sum over
    an episode is minus the mean completion time of its jobs. An episode ends with the last job.

    A request whose features equal those of an earlier one of the episode shares the first action.
    An action that is the score of a ``LearnedOrder`` leads to the schedule of that order.
    """

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(
        self,
        trace: Trace,
        nodes: str,
        *,
        jobs: int = 200,
        estimates: str = "history",
        restart_cost: float = 60.0,
    ) -> None:
        """Prepare episodes of jobs that follow each other in a trace, from an empty pool.

        Args:
            trace: as ``read_trace`` reads it.
            nodes: of the pool, such as ``6x8``.
            jobs: number of jobs of an episode; the seed chooses where it begins.
            estimates: ``history``, ``oracle`` or ``lognormal:1.0``, whose errors the seed draws.
            restart_cost: seconds of work that a job repeats after it was stopped.

        Raises:
            InvalidInput: the trace has no jobs, or the nodes or estimates are not accepted.
        """
        if not trace.jobs or jobs < 1:
            raise InvalidInput(
                "An episode needs at least one job.",
                accepted="A trace with jobs, and jobs=1 or more.",
            )
        parse_estimates(estimates, (), 0)
        self._settings = _Settings(
            trace=trace,
            pools=parse_nodes(nodes).pools(),
            jobs=min(jobs, len(trace.jobs)),
            estimates=estimates,
            restart_cost=restart_cost,
        )
        self._episode: OrderEpisode | None = None
        most = np.full(len(FEATURES), LARGEST_FEATURE)
        self.observation_space = gymnasium.spaces.Box(-most, most, dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(0.0, LARGEST_EXPONENT, (1,), np.float64)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return the first observation.

        Raises:
            InvalidInput: a job of the episode is larger than the pool.
        """
        super().reset(seed=seed, options=options)
        first = int(self.np_random.integers(self._settings.starts))
        errors = int(self.np_random.integers(_MOST_SEEDS))
        self._episode = OrderEpisode(self._settings.episode(first, errors))
        return np.array(self._episode.observation), {}

    def step(self, action: Sequence[float]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide on the observed request.

        Raises:
            InvalidInput: the action is not finite, or the episode has not begun or is over.
        """
        if self._episode is None:
            raise InvalidInput("There is no episode.", accepted="Call reset() before step().")
        passed = self._episode.step(float(np.asarray(action).reshape(-1)[0]))
        return np.array(self._episode.observation), -passed, self._episode.over, False, {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What the episodes have in common."""

    trace: Trace
    pools: Pools
    jobs: int
    estimates: str
    restart_cost: float

    @property
    def starts(self) -> int:
        """Number of jobs with which an episode can begin."""
        return len(self.trace.jobs) - self.jobs + 1

    def episode(self, first: int, seed: int) -> Experiment:
        jobs = self.trace.jobs[first : first + self.jobs]
        return Experiment(
            trace=replace(self.trace, jobs=jobs),
            pools=self.pools,
            estimator=parse_estimates(self.estimates, jobs, seed),
            restart_cost=self.restart_cost,
        )
