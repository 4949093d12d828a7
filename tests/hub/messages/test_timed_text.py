"""Sentences with times, before they are formatted for a time zone."""

from __future__ import annotations

import pytest

from carrel.hub.messages import units
from carrel.hub.messages.timed_text import (
    TimedSentence,
    TimedText,
    expected_start,
    expected_start_or_unknown,
    timed_reasons,
)
from carrel.hub.schemas import QueueEntryOut, QuoteOut, WaitOut
from carrel.hub.schemas.explanation import WhyOut

NOW = 1e9


def wait(expected: float | None, latest: float | None = None) -> WaitOut:
    return WaitOut(
        place=2, ahead=1, reason="behind_others", sentence="Queued at position 2. Why.", why="Why.",
        expected_at=expected, latest_at=latest,
    )  # fmt: skip  # grouped by meaning


def one(at: float) -> TimedSentence:
    return (TimedText(before="Expected start: ", at=at, after=".", show="coming"),)


@pytest.mark.parametrize(
    ("expected", "latest", "words"),
    [
        (None, None, ()),
        (NOW + 60, None, one(NOW + 60)),
        (NOW + 60, NOW + 60, one(NOW + 60)),
        (NOW + 60, NOW + 119, one(NOW + 60)),
        (
            NOW + 60,
            NOW + 120,
            (
                TimedText(before="Expected start: ", at=NOW + 60, show="coming"),
                TimedText(before=", at the latest ", at=NOW + 120, after="."),
            ),
        ),
        (
            NOW - 60,
            NOW + 120,
            (
                TimedText(before="Expected start: ", at=NOW, show="coming"),
                TimedText(before=", at the latest ", at=NOW + 120, after="."),
            ),
        ),
        (NOW - 120, NOW - 60, one(NOW)),
    ],
)
def test_an_expected_start_is_a_time_or_an_interval_in_the_future(
    expected: float | None, latest: float | None, words: TimedSentence
) -> None:
    row = QueueEntryOut(
        place=2, kind="job", devices=1, sentence="Queued at position 2.", yours=False,
        expected_at=expected, latest_at=latest,
    )  # fmt: skip  # grouped by meaning
    quote = QuoteOut(admitted=True, sentence="", expected_at=expected, latest_at=latest)
    assert {expected_start(each, NOW) for each in (wait(expected, latest), row, quote)} == {words}


def test_an_unknown_start_has_a_sentence() -> None:
    def asked(waits: WaitOut | None) -> TimedSentence:
        return expected_start_or_unknown(WhyOut(request_id="j", wait=waits, sentences=[]), NOW)

    assert asked(None) == ()
    assert asked(wait(NOW + 60)) == one(NOW + 60)
    assert asked(wait(None)) == (TimedText(before="The start cannot be estimated yet."),)


def test_a_reservation_has_its_span_and_a_budget_its_refill() -> None:
    found = WhyOut(request_id="j", sentences=[], reserved_from=1.0, reserved_until=2.0)
    span = (
        TimedText(before="Reserved from ", at=1.0),
        TimedText(before=" to ", at=2.0, after="."),
    )
    refill = (TimedText(before="The budget is renewed: ", at=3.0, after="."),)
    assert timed_reasons(found) == (span,)
    assert timed_reasons(found.model_copy(update={"refills_at": 3.0})) == (span, refill)
    assert timed_reasons(WhyOut(request_id="j", sentences=[])) == ()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-60, "any moment"),
        (4.9, "any moment"),
        (5, "in about 5 s"),
        (59.4, "in about 59 s"),
        (59.5, "in about 1 min"),
        (90, "in about 2 min"),
        (3599, "in about 60 min"),
        (3600, "in about 1 h"),
        (5400, "in about 1 h 30 min"),
        (7199, "in about 2 h"),
        (36000 + 1800, "in about 10 h"),
        (86399, "in about 24 h"),
        (86400 * 1.5, "in about 2 d"),
    ],
)
def test_the_time_until_an_estimate_is_rounded(seconds: float, words: str) -> None:
    assert units.coming(seconds) == words
