"""Compare two decisions about one snapshot: with a learned order, and without it."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from ..scheduling.cycle.decision import decide
from ..scheduling.model.learned_order import LearnedOrder
from ..scheduling.model.plan import Plan
from ..scheduling.model.snapshot import Snapshot
from .records import ShadowDecision


def could_differ(snapshot: Snapshot) -> bool:
    """Return whether an owner has several queued requests in one group and class.

    A learned order changes nothing else.
    """
    queues = {(each.owner, each.group, each.priority) for each in snapshot.pending}
    return len(queues) < len(snapshot.pending)


def compare(snapshot: Snapshot, learned: LearnedOrder, now: float) -> ShadowDecision | None:
    """Decide twice; return the difference, or None if the same requests start."""
    live = decide(snapshot, now)
    shadow = decide(replace(snapshot, learned_order=learned), now)
    started, would_start = _started(live), _started(shadow)
    if started == would_start:
        return None
    before, after = _expected(live, now), _expected(shadow, now)
    both = before.keys() & after.keys()
    return ShadowDecision(
        at=now,
        queued=len(snapshot.pending),
        started=tuple(sorted(started - would_start)),
        would_start=tuple(sorted(would_start - started)),
        sooner=fmean(before[name] - after[name] for name in both) if both else 0.0,
    )


def _started(plan: Plan) -> frozenset[str]:
    return frozenset(start.request_id for start in plan.starts)


def _expected(plan: Plan, now: float) -> dict[str, float]:
    """Return the expected starts by request id."""
    found = {each.request_id: each.estimate.at for each in plan.waits if each.estimate}
    return found | dict.fromkeys(_started(plan), now)
