"""Quotes: predict the wait of requests before they are submitted, for forms that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import CarrelError, Refused
from ..groups.membership import Membership
from ..messages.wait_reasons import OwnUsage, quote_sentence
from ..records.identity import Identity
from ..runtime.context import Context
from ..runtime.snapshots import SnapshotReader
from ..scheduling.explanation.quotes import quotes
from ..scheduling.model.plan import Reason, Wait
from ..scheduling.model.snapshot import Kind, PendingRequest, Snapshot
from ..scheduling.quota.tree import GroupTree, Tally
from ..schemas import QuoteIn, QuoteOut
from .policy import check_resources, class_of


@dataclass(slots=True)
class _Groups:
    """Resolves the group of every quote, with one call of JupyterHub per group."""

    membership: Membership
    owner: str
    known: dict[str, str | Refused]

    def of(self, wanted: str) -> str:
        if wanted not in self.known:
            try:
                self.known[wanted] = self.membership.choose_group(self.owner, wanted, for_page=True)
            except Refused as refusal:
                self.known[wanted] = refusal
        found = self.known[wanted]
        if isinstance(found, CarrelError):
            raise found
        return found


@dataclass(frozen=True, slots=True)
class Quotes:
    """Runs admission, queue order and placement without storing anything."""

    context: Context

    def quotes(self, who: Identity, bodies: Sequence[QuoteIn]) -> list[QuoteOut]:
        """Return quotes in order, each as if only that request were submitted now.

        Raises:
            Unavailable: JupyterHub does not respond with the groups of the user.
        """
        c = self.context
        now = c.clock()
        snapshot = SnapshotReader.of(c).snapshot(now)
        groups = _Groups(Membership.of(c), who.name, {})
        refused: list[QuoteOut | None] = []
        admitted: list[PendingRequest] = []
        for number, body in enumerate(bodies):
            try:
                group = groups.of(body.group)
                request = _pending(number, who.name, group, body, now)
                check_resources(
                    snapshot.groups,
                    snapshot.devices,
                    group=group,
                    devices=request.devices,
                    seconds=request.seconds,
                    model=request.model,
                    kind=request.kind,
                    preemptible=request.preemptible,
                )
            except Refused as refusal:
                refused.append(_refused(body, refusal))
                continue
            refused.append(None)
            admitted.append(request)
        waits = iter(quotes(snapshot, admitted, now) if admitted else ())
        requests = iter(admitted)
        return [quote or _admitted(next(requests), next(waits), snapshot, now) for quote in refused]


def _pending(number: int, owner: str, group: str, body: QuoteIn, now: float) -> PendingRequest:
    kind = Kind(body.kind)
    return PendingRequest(
        id=f"~{number}",  # sorts after every real id
        kind=kind,
        owner=owner,
        group=group,
        devices=body.devices,
        seconds=body.seconds,
        submitted_at=now,
        model=body.model,
        priority=class_of(kind),
        preemptible=body.preemptible and kind is Kind.JOB,
    )


def _refused(body: QuoteIn, refusal: Refused) -> QuoteOut:
    return QuoteOut(
        admitted=False,
        sentence=str(refusal),
        group=body.group,
        devices=body.devices,
        message=refusal.message,
        accepted=refusal.accepted,
    )


def _admitted(request: PendingRequest, wait: Wait, snapshot: Snapshot, now: float) -> QuoteOut:
    estimate = wait.estimate
    return QuoteOut(
        admitted=True,
        sentence=quote_sentence(wait, now, _own_usage(request, wait, snapshot)),
        group=request.group,
        devices=request.devices,
        starts_now=wait.place == 0,
        place=wait.place,
        ahead=wait.ahead,
        expected_at=estimate.at if estimate else None,
        latest_at=estimate.latest if estimate else None,
        device_seconds=float(request.devices * request.seconds),
    )


def _own_usage(request: PendingRequest, wait: Wait, snapshot: Snapshot) -> OwnUsage | None:
    """Return the owner's usage of the maximum per member, if that limit holds the request."""
    group = next((group for group in snapshot.groups if group.name == wait.detail), None)
    if wait.reason is not Reason.USER_MAXIMUM or group is None:
        return None
    own = (held for held in snapshot.allocations if held.owner == request.owner)
    used = Tally(GroupTree(snapshot.groups), own).of_user(group.name, request.owner)
    maximum = group.max_devices_per_user
    if used + request.devices <= maximum:
        return None  # the owner's queued requests count as well
    return OwnUsage(group=group.name, used=used, maximum=maximum)
