"""Histories of runs for tests."""

from __future__ import annotations

import math
import random

from hypothesis import strategies as st

from carrel.hub.insight.past_runs import PastRun, PlannedRun

NOW = 1_780_000_000.0


def past_run(
    seconds: float,
    *,
    at: float = NOW,
    owner: str = "ada",
    group: str = "lab",
    program: str = "train",
    censored: bool = False,
    limit: float = math.inf,
    **parameters: float,
) -> PastRun:
    """Return a run that began when it was submitted."""
    plan = PlannedRun(
        at=at,
        owner=owner,
        group=group,
        program=program,
        parameters=parameters,
        limit=limit,
        devices=1,
    )
    return PastRun(plan=plan, ended_at=at + seconds, seconds=seconds, censored=censored)


def plan_of(**fields: str | float) -> PlannedRun:
    """Return the plan of a run like those of ``past_run``."""
    return past_run(1.0, **{"at": NOW + 1e6, **fields}).plan  # type: ignore[arg-type]


def steps_history(count: int, seed: int = 1) -> list[PastRun]:
    """Return runs whose seconds are about ten times their parameter ``steps``."""
    drawn = random.Random(seed)  # noqa: S311
    runs = []
    for number in range(count):
        steps = drawn.choice((1, 2, 4, 8, 16))
        seconds = 10 * steps * math.exp(drawn.gauss(0, 0.1))
        owner = drawn.choice(("ada", "ben", "cy"))
        runs.append(past_run(seconds, at=NOW + 400 * number, owner=owner, steps=float(steps)))
    return runs


_times = st.floats(allow_nan=True, allow_infinity=True) | st.floats(NOW, NOW + 1e6)
_seconds = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0.1, 1e5)


@st.composite
def _odd_run(draw: st.DrawFn) -> PastRun:
    plan = PlannedRun(
        at=draw(_times),
        owner=draw(st.sampled_from(("", "ada", "ben"))),
        group=draw(st.sampled_from(("", "lab"))),
        program=draw(st.sampled_from(("", "train", "test"))),
        parameters=draw(
            st.dictionaries(
                st.sampled_from(("lr", "steps")),
                st.floats() | st.text(max_size=2),
                max_size=2,
            )
        ),
        sizes=draw(st.dictionaries(st.sampled_from(("bytes",)), st.floats(), max_size=1)),
        devices=draw(st.integers(0, 2)),
        limit=draw(st.sampled_from((60.0, 3600.0, math.inf))),
    )
    return PastRun(
        plan=plan,
        ended_at=draw(_times),
        seconds=draw(_seconds),
        censored=draw(st.booleans()),
    )


odd_histories = st.lists(_odd_run(), max_size=12)
"""Damaged histories: times that jump, durations that are none, one user, only failures."""
