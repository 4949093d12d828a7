"""Compare live decisions with those of a learned order, outside of the scheduling cycles."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..errors import InvalidInput
from ..interfaces.clock import Instant, MonotonicClock, monotonic
from ..scheduling.model.learned_order import LearnedOrder
from ..scheduling.model.snapshot import Snapshot
from .comparison import compare, could_differ
from .records import ShadowRun
from .store import ShadowStore

log = logging.getLogger(__name__)

OFF_SECONDS = 10.0
"""Seconds between two looks whether a run has begun."""
LEAST_SECONDS = 1.0
REST = 20.0
"""Pause after a comparison, as a multiple of its duration: it uses at most 5 % of a core."""


class ShadowRecorder:
    """Compares a sample of the decisions; it changes none of them.

    ``note`` is called by the loop and does no I/O; ``compare`` may run in another thread, one call
    at a time.

    Args:
        load: loads a learned order by name; it raises InvalidInput where that cannot be used.
    """

    def __init__(
        self,
        store: ShadowStore,
        load: Callable[[str], LearnedOrder],
        clock: MonotonicClock = monotonic,
    ) -> None:
        self._store, self._load, self._clock = store, load, clock
        self._noted: tuple[Snapshot, float] | None = None
        self._noted_starts = False
        self._compared: tuple[object, ...] = ()
        """The run and the parts of the snapshot that were compared last."""
        self._rests_since: Instant | None = None
        self._rest = 0.0
        self._is_on = False
        """Whether a run went on at the last look."""

    @property
    def pending(self) -> bool:
        return self._noted is not None and not self._rests

    @property
    def _rests(self) -> bool:
        since = self._rests_since
        return since is not None and self._clock() - since < self._rest

    def note(self, snapshot: Snapshot, now: float, *, starts: bool) -> None:
        """Keep this snapshot for the next comparison.

        Of the snapshots since the last one, the newest in which a request starts is compared, or
        the newest of all.

        Args:
            starts: whether a request starts in the live decision.
        """
        if self._noted_starts and not starts:
            return
        if (self._is_on or not self._rests) and could_differ(snapshot):
            self._noted, self._noted_starts = (snapshot, now), starts

    def compare(self) -> None:
        """Compare the decisions about the snapshot that was noted, and store the difference."""
        noted, self._noted, self._noted_starts = self._noted, None, False
        if noted is None:
            return
        began = self._clock()
        self._rest = OFF_SECONDS
        try:
            run = self._store.current()
            self._is_on = run is not None
            if run is not None:
                self._compare(run, *noted)
                self._rest = max(LEAST_SECONDS, REST * (self._clock() - began))
        finally:
            self._rests_since = self._clock()

    def _compare(self, run: ShadowRun, snapshot: Snapshot, now: float) -> None:
        seen = (run.number, snapshot.pending, snapshot.allocations)
        if seen == self._compared:
            return
        try:
            learned = self._load(run.name)
        except InvalidInput as error:
            if error.message != run.problem:
                log.warning("%s Nothing is compared with it. %s", error.message, error.accepted)
                self._store.record_problem(run, error.message)
            return
        self._store.record(run, compare(snapshot, learned, now))
        self._compared = seen
