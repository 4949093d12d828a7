"""More time for what runs, where nobody waits for what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .errors import Conflict, OverMaximum
from .interfaces.files import Identity
from .records.requests import RequestRecord
from .runtime.context import Commands
from .scheduling.explanation.quotes import kept_from_longer, served_without
from .scheduling.model.plan import Reason
from .scheduling.model.snapshot import Snapshot
from .scheduling.model.states import MAY_RUN, State
from .scheduling.model.text import span
from .scheduling.quota import tree as quota
from .schemas import RequestOut
from .store.rules.owner_transitions import more_than_now

_SHORTEST = 60
_KEPT: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.BUDGET: "what is left of its group's budget of this period is promised already "
        "to what runs.",
        Reason.RESERVATION: "from then on its devices are kept for a reservation.",
        Reason.GUARANTEE: "it could not give back what other groups are guaranteed.",
    }
)
"""Why what runs may not run for longer."""


@dataclass(frozen=True, slots=True)
class Extending:
    """The rules by which a time limit may grow."""

    commands: Commands

    def extend(
        self, who: Identity, request_id: str, seconds: int, *, seen: int | None = None
    ) -> RequestOut:
        """By its owner, a teacher of its group or an administrator, who are those that see it.

        Safe to repeat by whoever says which time limit was ``seen``: it is that one that grows.

        Raises:
            Conflict: it does not run, somebody waits whom its devices would serve, or they are
                kept for others: for a reservation, or for what is guaranteed.
            OverMaximum: it would run for longer than its group allows, counted from now.
        """
        c = self.commands
        record = c.visible(who, request_id)
        now = c.clock()
        added = more_than_now(record, seconds, seen)
        if added and record.state in MAY_RUN - {State.STOPPING}:
            self._check_length(record, added, now)
            if record.devices:
                snapshot = c.store.snapshot(now)
                self._check_queue(record, snapshot, now)
                self._check_what_is_kept(record, added, snapshot, now)
        c.store.extend(request_id, seconds, by=who.name, now=now, seen=seen)
        c.pulse.beat()
        return c.request(who, request_id)

    def _check_length(self, record: RequestRecord, seconds: int, now: float) -> None:
        limits = quota.limits(quota.Tree(self.commands.store.groups()), record.group)
        most = limits.max_seconds if limits else 0
        granted = record.lease.granted_at if record.lease else now
        room = int(most - max(0.0, granted + record.seconds - now))
        if seconds > room:
            raise OverMaximum(
                f"{record.group} allows at most {span(most)} from now.",
                accepted=f"Extend it by at most {span(room)}."
                if room >= _SHORTEST
                else "It has all of that already; try again later.",
                field="seconds",
            )

    def _check_queue(self, record: RequestRecord, snapshot: Snapshot, now: float) -> None:
        if served_without(snapshot, record.id, now) is not None:
            what = "the device" if record.devices == 1 else "the devices"
            raise Conflict(
                f"It cannot be extended: somebody in the queue waits for {what} that it holds.",
                accepted="It runs until its time is over. A new request gets a place in the "
                "queue now.",
            )

    def _check_what_is_kept(
        self, record: RequestRecord, seconds: int, snapshot: Snapshot, now: float
    ) -> None:
        """As for whoever starts: not into a reservation of others, and not on devices that could
        not be given back to those who are guaranteed them."""
        ends = record.lease.granted_at + record.seconds if record.lease else now

        def kept(until: float) -> Reason | None:
            found = kept_from_longer(snapshot, record.id, until, now)
            return None if found is None else found.reason

        reason = kept(ends + seconds)
        if reason is None:
            return
        begin = sorted({each.starts_at for each in snapshot.reserved}, reverse=True)
        room = next((each - ends for each in begin if each > ends and kept(each) is None), 0.0)
        raise Conflict(
            f"It cannot be extended so far: {_KEPT[reason]}",
            accepted=f"Extend it by at most {span(int(room))}."
            if room >= _SHORTEST
            else "It runs until its time is over.",
        )
