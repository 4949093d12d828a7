"""Runtime estimates for policies."""

from __future__ import annotations

from math import log
from statistics import fmean, pstdev

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.simulation.replay.runtime_estimates import (
    UNKNOWN_SECONDS,
    ObservedRuntimes,
    parse_estimates,
)

from ..kit import job

JOBS = tuple(job(str(number), number, 100.0) for number in range(4000))


def test_an_oracle_knows_the_runtime() -> None:
    assert parse_estimates("oracle", JOBS, 0)().expect(JOBS[7]) == 100.0


def test_drawn_errors_have_the_spread_that_was_asked_for_and_follow_the_seed() -> None:
    drawn = parse_estimates("lognormal:0.5", JOBS, 1)()
    errors = [log(drawn.expect(each) / each.seconds) for each in JOBS]
    assert fmean(errors) == pytest.approx(0.0, abs=0.03)
    assert pstdev(errors) == pytest.approx(0.5, abs=0.03)
    again, other = (parse_estimates("lognormal:0.5", JOBS, seed)() for seed in (1, 2))
    assert [again.expect(each) for each in JOBS] == [drawn.expect(each) for each in JOBS]
    assert other.expect(JOBS[0]) != drawn.expect(JOBS[0])


def test_history_uses_the_last_two_equal_jobs_that_have_ended() -> None:
    history = ObservedRuntimes()
    assert history.expect(job("a", 0, 1)) == UNKNOWN_SECONDS
    for seconds in (1000, 20, 40):
        history.ended(job("x", 0, seconds, user="ada", tenant="lab"))
    history.ended(job("x", 0, 500, 8, user="ada", tenant="lab"))
    history.ended(job("x", 0, 7, user="bob", tenant="lab"))

    assert history.expect(job("a", 0, 1, user="ada", tenant="lab")) == 30.0
    assert history.expect(job("a", 0, 1, 4, user="ada", tenant="lab")) == 270.0
    assert history.expect(job("a", 0, 1, user="eve", tenant="lab")) == fmean((40, 7))
    assert history.expect(job("a", 0, 1, 4, user="eve", tenant="lab")) == fmean((500, 7))
    assert history.expect(job("a", 0, 1, user="eve", tenant="other")) == fmean((500, 7))


@pytest.mark.parametrize(
    "text", ["", "magic", "oracle:1", "history:2", "lognormal", "lognormal:x", "lognormal:-1",
             "lognormal:nan", "lognormal:1e9"],
)  # fmt: skip
def test_an_invalid_estimator_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="oracle, lognormal:SIGMA"):
        parse_estimates(text, JOBS, 0)
