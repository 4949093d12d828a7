"""Amend requests: queued ones to start sooner, running ones to run longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..admission.policy import admit
from ..errors import Conflict, OverMaximum
from ..groups.membership import Membership
from ..records.identity import Identity
from ..records.requests import RequestChange, RequestRecord, more_than_now
from ..runtime.context import Context
from ..scheduling.explanation.quotes import blocked_by, extension_hold
from ..scheduling.model.plan import Reason
from ..scheduling.model.snapshot import PriorityClass, Snapshot
from ..scheduling.model.states import MAY_RUN, State
from ..scheduling.model.text import span
from ..scheduling.quota import tree
from ..schemas import ChangeIn, RequestOut
from ..transitions import owner_changes
from .access import RequestAccess
from .queries import RequestQueries


@dataclass(frozen=True, slots=True)
class Amendments:
    """Amends queued requests."""

    context: Context

    def change(self, who: Identity, request_id: str, body: ChangeIn) -> RequestOut:
        """Reduce devices or time limit, or change model or group, for the owner of the request.

        These are the suggestions of ``explain``. Safe to repeat.

        Raises:
            Conflict: it is no longer queued, or the amendment would increase the request.
            Refused: the group does not admit it.
        """
        c = self.context
        record = RequestAccess(c.store).owned(who, request_id)
        wanted = RequestChange(
            devices=body.devices,
            seconds=body.seconds,
            group=body.group,
            model=(body.model or "") if "model" in body.model_fields_set else None,
        )
        if wanted.group is not None and wanted.group != record.group:
            self._move_to(record, wanted.group, wanted)
        elif wanted.model and wanted.model != record.model:
            self._let_in(record, record.group, wanted)
        c.store.apply(record.id, owner_changes.amend, wanted, now=c.clock())
        c.notifier.notify()
        return RequestQueries(c).request(who, request_id)

    def _move_to(self, record: RequestRecord, group: str, wanted: RequestChange) -> None:
        if record.priority is PriorityClass.URGENT:
            raise Conflict(
                f"{record.id} is urgent for {record.group}: it stays there.",
                accepted="Fewer devices or a shorter time limit.",
            )
        Membership.of(self.context).choose_group(record.owner, group)
        self._let_in(record, group, wanted)

    def _let_in(self, record: RequestRecord, group: str, wanted: RequestChange) -> None:
        """As if it were submitted there now."""
        admit(
            self.context.store,
            group=group,
            devices=wanted.devices or record.devices,
            seconds=wanted.seconds or record.seconds,
            model=record.model if wanted.model is None else wanted.model or None,
            kind=record.kind,
            preemptible=record.preemptible,
        )


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
class TimeExtensions:
    """The rules by which a time limit may grow."""

    context: Context

    def extend(
        self, who: Identity, request_id: str, seconds: int, *, seen: int | None = None
    ) -> RequestOut:
        """By its owner, a teacher of its group or an administrator, who are those that see it.

        Safe to repeat with ``seen``, the time limit that is extended.

        Raises:
            Conflict: it does not run, a queued request could use its devices, or they are
                kept for others: for a reservation, or for what is guaranteed.
            OverMaximum: it would run for longer than its group allows, counted from now.
        """
        c = self.context
        record = RequestAccess(c.store).visible(who, request_id)
        now = c.clock()
        added = more_than_now(record, seconds, seen)
        if added and record.state in MAY_RUN - {State.STOPPING}:
            self._check_length(record, added, now)
            if record.devices:
                snapshot = c.store.snapshot(now)
                self._check_queue(record, snapshot, now)
                self._check_what_is_kept(record, added, snapshot, now)
        c.store.apply(request_id, owner_changes.extend, seconds, by=who.name, now=now, seen=seen)
        c.notifier.notify()
        return RequestQueries(c).request(who, request_id)

    def _check_length(self, record: RequestRecord, seconds: int, now: float) -> None:
        limits = tree.limits(tree.GroupTree(self.context.store.groups()), record.group)
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
        if blocked_by(snapshot, record.id, now) is not None:
            what = "the device" if record.devices == 1 else "the devices"
            raise Conflict(
                f"It cannot be extended: a queued request waits for {what} that it holds.",
                accepted="It runs until its time is over. A new request gets a place in the "
                "queue now.",
            )

    def _check_what_is_kept(
        self, record: RequestRecord, seconds: int, snapshot: Snapshot, now: float
    ) -> None:
        """Check it as a new start: not into a reservation of others, and not on devices that are
        needed for the guaranteed quota of others."""
        ends = record.lease.granted_at + record.seconds if record.lease else now

        def kept(until: float) -> Reason | None:
            found = extension_hold(snapshot, record.id, until, now)
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
