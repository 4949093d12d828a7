"""More time for what runs, where nobody waits for what it holds."""

from __future__ import annotations

from dataclasses import dataclass

from .commands import Commands
from .errors import Conflict, OverMaximum
from .ports.records import RequestRecord
from .ports.world import Identity
from .scheduling import quota
from .scheduling.lifecycle import MAY_RUN, State
from .scheduling.quoting import served_without
from .scheduling.wordforms import span
from .store.wishes import more_than_now
from .wire import RequestOut

_SHORTEST = 60


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
            Conflict: it does not run, or somebody waits whom its devices would serve.
            OverMaximum: it would run for longer than its group allows, counted from now.
        """
        c = self.commands
        record = c.visible(who, request_id)
        now = c.clock()
        added = more_than_now(record, seconds, seen)
        if added and record.state in MAY_RUN - {State.STOPPING}:
            self._check_length(record, added, now)
            self._check_queue(record, now)
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

    def _check_queue(self, record: RequestRecord, now: float) -> None:
        """A request on CPU holds nothing that anybody could wait for."""
        if not record.devices:
            return
        if served_without(self.commands.store.snapshot(now), record.id, now) is not None:
            what = "the device" if record.devices == 1 else "the devices"
            raise Conflict(
                f"It cannot be extended: somebody in the queue waits for {what} that it holds.",
                accepted="It runs until its time is over. A new request gets a place in the "
                "queue now.",
            )
