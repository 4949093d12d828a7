"""Work as the predictions see it: what is known before a run, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Value = str | float
"""A parameter: text, or a number (true and false are 1 and 0)."""

LONGEST = 366 * 86_400.0
"""Seconds of the longest run that a history may hold; more is a clock error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """What is known of a run before it starts.

    Attributes:
        at: when it was submitted, in seconds since the epoch.
        owner: the user.
        group: the group or course that it is charged to.
        program: what identifies its code: the hash of a notebook, or its name, or a command.
        parameters: its parameters; two runs of one program with the same ones are alike.
        sizes: further numbers that describe it without making it another run, such as the bytes of
            its input.
        model: the device model that was asked for; empty for any.
        devices: number of devices.
        image: the image; empty on an engine without images.
        limit: its time limit in seconds; infinite for none.
    """

    at: float
    owner: str = ""
    group: str = ""
    program: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    devices: int = 0
    image: str = ""
    limit: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run that has ended.

    Attributes:
        plan: what was known before.
        ended_at: when it ended, in seconds since the epoch.
        seconds: how long it ran.
        censored: whether it was stopped before it was complete, by its owner, its time limit or the
            pool: it would have run for longer than ``seconds``.
    """

    plan: PlannedRun
    ended_at: float
    seconds: float
    censored: bool = False


def usable(runs: Iterable[PastRun]) -> Iterator[PastRun]:
    """Yield the runs from which something can be learned.

    Left out are durations that are not finite, not positive or longer than ``LONGEST``, and times
    that are not finite: a clock was wrong, or a row is damaged.
    """
    for run in runs:
        if 0 < run.seconds <= LONGEST and math.isfinite(run.ended_at + run.plan.at):
            yield run
