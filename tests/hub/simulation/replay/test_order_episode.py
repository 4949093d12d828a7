"""A replay that stops for each discount."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.simulation.policies.carrel_policy import CarrelPolicy
from carrel.hub.simulation.replay.experiment import replayed
from carrel.hub.simulation.replay.order_episode import OrderEpisode

from ..kit import drawn_experiment


def mean_hours(policy: CarrelPolicy) -> float:
    (outcome,) = replayed(drawn_experiment(), policy)
    return fmean((run.ended_at or 0.0) - run.job.submitted_at for run in outcome.runs) / 3600


def cost(exponent: Callable[[tuple[float, ...]], float]) -> float:
    """Return the sum over an episode, in which each request has one step."""
    episode, total, steps = OrderEpisode(drawn_experiment()), 0.0, 0
    while not episode.over:
        total += episode.step(exponent(episode.observation))
        steps += 1
    assert steps == 120
    return total


WIDE = LearnedOrder(name="wide", weights=(1.0, -2.0, 6.0, *(WEIGHTS - 3) * (0.5,)))


def test_an_agent_that_acts_as_a_learned_order_has_its_schedule() -> None:
    assert cost(WIDE.score) == pytest.approx(mean_hours(CarrelPolicy(learned_order=WIDE)))
    assert cost(lambda _: 0.0) == pytest.approx(mean_hours(CarrelPolicy()))
    assert cost(WIDE.score) != pytest.approx(cost(lambda _: 0.0))


def test_exponents_out_of_range_are_cut_off() -> None:
    assert cost(lambda seen: 100 * seen[1]) == cost(lambda seen: min(8.0, 100 * seen[1]))


@pytest.mark.parametrize("exponent", [float("nan"), float("inf")])
def test_an_exponent_that_is_not_finite_is_refused(exponent: float) -> None:
    with pytest.raises(InvalidInput, match="not finite"):
        OrderEpisode(drawn_experiment()).step(exponent)


def test_after_the_last_job_there_is_nothing_to_decide() -> None:
    episode = OrderEpisode(drawn_experiment(1))
    episode.step(0.0)
    assert episode.over
    with pytest.raises(InvalidInput, match="no request"):
        episode.step(0.0)
