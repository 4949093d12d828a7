"""Decide how submissions to a leaderboard go on after the request that evaluated them has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ...hub.schemas.coursework.leaderboards import EntryScoreOut
from ..model.leaderboards import EntryOutcome, LeaderboardEntry

_MOST_MISSED: Final = 5
_MISSED: Final = tuple(
    f"Evaluations that ended before they came to it: {count} of at most {_MOST_MISSED}."
    for count in range(1, _MOST_MISSED)
)
"""The end of the sentence of a submission that waits, by the requests that scored nothing."""
_FAULT: Final = "It was not evaluated, by a fault of the system."
COSTS_NOTHING: Final = (
    "It costs no submission: your teacher can have it scored again, or you submit it again."
)
_ANOTHER: Final = "It costs no submission: you can submit another file, or this one again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The scores of an ended request by submission.

    ``again``: another evaluation may do better: neither the teacher's files failed, nor was it
    cancelled.
    """

    scores: Mapping[str, EntryScoreOut] = field(default_factory=dict)
    again: bool


def after_evaluation(entry: LeaderboardEntry, evaluated: Evaluated) -> LeaderboardEntry:
    """A submission after its evaluation: with a verdict, or to be evaluated once more."""
    found, failed = evaluated.scores.get(entry.id), has_failed(entry)
    if found is None and evaluated.again and evaluated.scores:
        # The request ended before it came to this one. As it has evaluated others, the next
        # requests come to an end too.
        return replace(entry, request="")
    if found is None and evaluated.again:
        return _missed_again(entry)
    if found is None or found.fault:
        why = (found.problem if found else "") or _FAULT
        if evaluated.again and not failed:
            return replace(entry, request="", sentence=f"{why} It is evaluated once more.")
        twice = " Its second evaluation has failed too." if found and failed else ""
        if found is not None and found.stopped:
            sentence = f"{why}{twice} {_ANOTHER}"
            return replace(entry, outcome=EntryOutcome.STOPPED, sentence=sentence)
        sentence = f"{why}{twice} {COSTS_NOTHING}"
        return replace(entry, outcome=EntryOutcome.FAULT, sentence=sentence)
    if found.problem or found.public is None:
        return replace(entry, outcome=EntryOutcome.REFUSED, sentence=found.problem)
    return replace(
        entry,
        outcome=EntryOutcome.SCORED,
        sentence=f"Scored: {found.public:g} on the public part.",
        public=found.public,
        private=found.private,
    )


def _missed_again(entry: LeaderboardEntry) -> LeaderboardEntry:
    """A submission whose request ended without any score: it waits for another, within bounds."""
    before, missed = _sentence_parts(entry)
    if missed < len(_MISSED):
        sentence = f"{before} {_MISSED[missed]}".strip()
        return replace(entry, request="", sentence=sentence)
    why = f"{_MOST_MISSED} evaluations ended before they came to it, by a fault of the system."
    return replace(entry, outcome=EntryOutcome.FAULT, sentence=f"{why} {COSTS_NOTHING}")


def has_failed(entry: LeaderboardEntry) -> bool:
    """Whether a submission that waits was tried, and is evaluated once more."""
    return bool(_sentence_parts(entry)[0])


def _sentence_parts(entry: LeaderboardEntry) -> tuple[str, int]:
    """Why a submission that waits is evaluated once more, and how many requests missed it."""
    for count, text in enumerate(_MISSED, 1):
        if entry.sentence.endswith(text):
            return entry.sentence.removesuffix(text).rstrip(), count
    return entry.sentence, 0
