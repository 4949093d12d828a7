"""A gain that no batch can have is measured again before the advice says anything about it."""

from __future__ import annotations

from carrel.extensions.advice.gain_check import check_gain
from carrel.hub.insight.probes.settings import ProbeMeasurement, ProbeSetting


def of(batch: int, rate: float, problem: str = "") -> ProbeMeasurement:
    return ProbeMeasurement(setting=ProbeSetting(batch=batch), rate=rate, problem=problem)


def checked(
    before: list[ProbeMeasurement], again: ProbeMeasurement, left: float = 10.0
) -> tuple[list[float], str]:
    """Return the rates after the check of the last one, and what was said about it."""
    measured = list(before)
    said = check_gain(measured, lambda setting: again, lambda: left)
    return [each.rate for each in measured], said or measured[-1].problem


def test_a_gain_that_the_repeat_explains_stays() -> None:
    assert checked([of(32, 10.0), of(64, 190.0)], of(32, 100.0)) == ([100.0, 190.0], "")


def test_a_gain_that_stays_too_large_counts_as_failed() -> None:
    rates, said = checked([of(32, 100.0), of(64, 900.0)], of(32, 110.0))
    assert rates == [110.0, 0.0]
    assert "may have trained nothing" in said


def test_a_gain_that_cannot_be_checked_is_not_recommended_and_nothing_is_claimed() -> None:
    for again, left in ((of(32, 110.0), 0.0), (of(32, 0.0, "it did not end within 1 s."), 1.0)):
        rates, said = checked([of(32, 100.0), of(64, 900.0)], again, left)
        assert rates == [100.0, 0.0]
        assert "This was not checked" in said
        assert "it is not recommended" in said
        assert "trained nothing" not in said


def test_a_present_batch_is_doubted_only_after_the_smaller_one_was_repeated() -> None:
    measured = [of(64, 900.0), of(32, 100.0)]
    assert checked(measured, of(32, 850.0)) == ([900.0, 850.0], "")
    assert "may train nothing" in checked(measured, of(32, 110.0))[1]
    rates, said = checked(measured, of(32, 110.0), left=0.0)
    assert rates == [900.0, 100.0]
    assert "This was not checked" in said
    assert "train nothing" not in said
