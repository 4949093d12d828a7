"""Amend queued requests so that they start sooner, and extend the time limit of running ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..admission.policy import admit
from ..errors import BackendFailed, Conflict, OverMaximum
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
        """Reduce devices or time limit, or change model or group, of the caller's queued request.

        These changes are the suggestions of ``explain``. Idempotent.

        Raises:
            Conflict: the request is no longer queued, or would become larger.
            Refused: the group does not admit the request.
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
            self._check_group_change(record, wanted.group, wanted)
        elif wanted.model and wanted.model != record.model:
            self._check_admission(record, record.group, wanted)
        c.store.apply(record.id, owner_changes.amend, wanted, now=c.clock())
        c.notifier.notify()
        return RequestQueries(c).request(who, request_id)

    def _check_group_change(self, record: RequestRecord, group: str, wanted: RequestChange) -> None:
        if record.priority is PriorityClass.URGENT:
            raise Conflict(
                f"{record.id} is urgent in {record.group} and cannot change its group.",
                accepted="Reduce its devices or its time limit instead.",
            )
        Membership.of(self.context).choose_group(record.owner, group)
        self._check_admission(record, group, wanted)

    def _check_admission(self, record: RequestRecord, group: str, wanted: RequestChange) -> None:
        """Check the changed request as if it were submitted to the group now."""
        admit(
            self.context.store,
            group=group,
            devices=wanted.devices or record.devices,
            seconds=wanted.seconds or record.seconds,
            model=record.model if wanted.model is None else wanted.model or None,
            kind=record.kind,
            preemptible=record.preemptible,
            gang=record.gang,
        )


_SHORTEST = 60


_HOLDS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.BUDGET: "running requests may use all that is left of its group's budget in this "
        "period.",
        Reason.RESERVATION: "its devices are reserved from then on.",
        Reason.GUARANTEE: "its devices are needed for the guaranteed quota of other groups.",
    }
)
"""Why a running request cannot be extended, by the reason that holds its devices."""


@dataclass(frozen=True, slots=True)
class TimeExtensions:
    """Extends the time limits of running requests."""

    context: Context

    def extend(
        self, who: Identity, request_id: str, seconds: int, *, seen: int | None = None
    ) -> RequestOut:
        """Add seconds to the time limit of a running request.

        Every caller who can see the request may extend it: its owner, teachers of its group and
        administrators. Idempotent with ``seen``, the time limit that the caller saw.

        Raises:
            Conflict: the request does not run, its budget is used up, or its devices are needed by
                a queued request, a reservation, or the guaranteed quota of other groups; or its
                engine refuses.
            OverMaximum: the remaining time would exceed the limit of the group.
            Unavailable: its engine, which ends it at a time limit of its own, did not answer.
        """
        c = self.context
        record = RequestAccess(c.store).visible(who, request_id)
        now = c.clock()
        added = more_than_now(record, seconds, seen)
        if added and record.state in MAY_RUN - {State.STOPPING}:
            self._check_length(record, added, now)
            if record.devices:
                snapshot = replace(c.store.snapshot(now), learned_order=c.learned_order)
                self._check_queue(record, snapshot, now)
                self._check_holds(record, added, snapshot, now)
            self._extend_in_engine(record, added)
        c.store.apply(request_id, owner_changes.extend, seconds, by=who.name, now=now, seen=seen)
        c.notifier.notify()
        return RequestQueries(c).request(who, request_id)

    def _extend_in_engine(self, record: RequestRecord, seconds: int) -> None:
        """Extend it in an engine with time limits of its own, first: there it may be longer."""
        if record.lease is None:
            return
        try:
            self.context.backend.extend(
                record.lease.id, record.seconds + seconds, trusted=record.trusted
            )
        except BackendFailed as error:
            raise Conflict(
                f"It cannot be extended. {error.message}", accepted=error.accepted
            ) from error

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
                else "Its remaining time is at this limit; try again later.",
                field="seconds",
            )

    def _check_queue(self, record: RequestRecord, snapshot: Snapshot, now: float) -> None:
        if blocked_by(snapshot, record.id, now) is not None:
            what = "the device" if record.devices == 1 else "the devices"
            raise Conflict(
                f"It cannot be extended: a queued request waits for {what} that it holds.",
                accepted="It runs until its time limit. You can queue a new request now.",
            )

    def _check_holds(
        self, record: RequestRecord, seconds: int, snapshot: Snapshot, now: float
    ) -> None:
        """Check the extension like a new start.

        It must not run into a reservation, exceed the budget, or hold devices that other groups
        need for their guaranteed quota.
        """
        ends = record.lease.granted_at + record.seconds if record.lease else now

        def hold_reason(until: float) -> Reason | None:
            found = extension_hold(snapshot, record.id, until, now)
            return None if found is None else found.reason

        reason = hold_reason(ends + seconds)
        if reason is None:
            return
        starts = sorted({entry.starts_at for entry in snapshot.reserved}, reverse=True)
        room = next((at - ends for at in starts if at > ends and hold_reason(at) is None), 0.0)
        raise Conflict(
            f"It cannot be extended by that much: {_HOLDS[reason]}",
            accepted=f"Extend it by at most {span(int(room))}."
            if room >= _SHORTEST
            else "It runs until its time limit.",
        )
