"""How much of the pool a group could ever have beside what others are promised.

Carrel's own rule: what admission lets in, the cycle has to be able to start (a property test
holds the two to each other).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf

from ..model.snapshot import Device, Group, Health, Kind, PendingRequest, Snapshot
from ..queue.cycle_state import CycleState


def reach(group: str, groups: Iterable[Group], devices: Iterable[Device]) -> ReachableCapacity:
    """As ``CycleState`` has it, with every device repaired and taking work."""
    repaired = tuple(replace(each, health=Health.OK, marks=()) for each in devices)
    books = CycleState(Snapshot(devices=repaired, groups=tuple(groups)), 0.0)
    if not books.tree.chain(group):
        return ReachableCapacity(lent=0, kept=0)

    def most(*, preemptible: bool) -> int:
        sizes = range(1, len(repaired) + 1)
        return bisect_left(sizes, True, key=_refused(books, group, preemptible=preemptible))

    return ReachableCapacity(lent=most(preemptible=True), kept=most(preemptible=False))


def _refused(books: CycleState, group: str, *, preemptible: bool) -> Callable[[int], bool]:
    def refused(devices: int) -> bool:
        asked = PendingRequest(
            id="",
            kind=Kind.JOB,
            owner="",
            group=group,
            devices=devices,
            seconds=1.0,
            submitted_at=0.0,
            preemptible=preemptible,
        )
        return not books.leaves_what_is_kept(asked) or books.kept_from(asked) is not None

    return refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableCapacity:
    """The most devices that one request of a group could ever have, were nothing else held.

    Attributes:
        lent: of what may be asked back: all but what others do not lend.
        kept: of what may not, as a session: it leaves others all that they are guaranteed.
    """

    lent: float
    kept: float

    def of(self, *, preemptible: bool) -> float:
        return self.lent if preemptible else self.kept


EVERYTHING = ReachableCapacity(lent=inf, kept=inf)
