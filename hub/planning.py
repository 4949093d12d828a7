"""When the whole queue is decided about, and when a look at the newcomers is enough.

``decide`` goes along the whole queue. With thousands that wait this takes a while, and whoever
submits meanwhile feels it. Most news of a long queue is one more request at its end that has
to wait anyway: nothing starts, and its place may follow a moment later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from .scheduling.cycle import decide
from .scheduling.model import Plan, Snapshot, Waiting
from .scheduling.ordering import OrderKey, order_key

LONG_SECONDS = 0.02
"""A decision that takes longer is followed by a rest."""
REST = 4.0
"""Length of that rest, in the times that the decision took."""
LONGEST_REST = 1.0


class Planner:
    """Asks ``decide`` about the whole queue whenever something could start, and else now and then.

    Nothing can start where the last plan started nothing and since then only newcomers joined
    the end of the queue, none of whom could start if they were the only one: what is free and
    held is the same, those ahead are not moved by whom they are ahead of, and somebody ahead
    never helps. Everything else that changed asks for the whole queue at once.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._snapshot: Snapshot | None = None
        """The one of the last plan, if that plan started nothing."""
        self._end: OrderKey | None = None
        self._tried: set[str] = set()
        """Newcomers that were found unable to start."""
        self._since: float | None = None
        """Since when the last plan lacks something."""
        self._took = 0.0
        self.rest = 0.0
        """How long to leave the processor to others now."""

    def plan(self, snapshot: Snapshot, now: float) -> Plan | None:
        """What holds now, or None while the last plan will do."""
        self.rest = 0.0
        newcomers = self._newcomers(snapshot)
        if newcomers is None or self._may_start(snapshot, newcomers, now):
            return self._whole(snapshot, now)
        # Whoever is past the limit pushes the expected start of others on and on.
        if not newcomers and all(holding.until >= now for holding in snapshot.holdings):
            self._since = None
            return None
        if self._since is None:
            self._since = self._monotonic()
        return self._whole(snapshot, now) if self.due_in() <= 0 else None

    def due_in(self) -> float:
        """Seconds until the last plan has lacked something for long enough."""
        if self._since is None:
            return LONGEST_REST
        return self._since + rest_after(self._took) - self._monotonic()

    def _newcomers(self, snapshot: Snapshot) -> tuple[Waiting, ...] | None:
        """Those at the end of the queue that the last plan lacks; None if more has changed."""
        last = self._snapshot
        if last is None or replace(snapshot, waiting=last.waiting) != last:
            return None
        known = len(last.waiting)
        if snapshot.waiting[:known] != last.waiting:
            return None
        new = snapshot.waiting[known:]
        at_the_end = self._end is None or all(order_key(each) > self._end for each in new)
        return new if at_the_end else None

    def _may_start(self, snapshot: Snapshot, newcomers: tuple[Waiting, ...], now: float) -> bool:
        """Whether one of them could start with nobody ahead; each is tried once."""
        for each in newcomers:
            if each.id in self._tried:
                continue
            if decide(replace(snapshot, waiting=(each,)), now).starts:
                return True
            self._tried.add(each.id)
        return False

    def _whole(self, snapshot: Snapshot, now: float) -> Plan:
        began = self._monotonic()
        plan = decide(snapshot, now)
        self._snapshot = None if plan.starts else snapshot
        self._end = max(map(order_key, snapshot.waiting), default=None)
        self._tried, self._since = set(), None
        self._took = self._monotonic() - began
        self.rest = rest_after(self._took)
        return plan


def rest_after(deciding: float) -> float:
    """How long to leave the processor to those who submit, after a decision that took long.

    With a short queue that is nothing.
    """
    return min(REST * deciding, LONGEST_REST) if deciding > LONG_SECONDS else 0.0
