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
    """The group that each choice is charged to; JupyterHub is asked once for each."""

    membership: Membership
    owner: str
    known: dict[str, str | Refused]

    def of(self, wanted: str) -> str:
        if wanted not in self.known:
            try:
                self.known[wanted] = self.membership.choose_group(self.owner, wanted)
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

    def quotes(self, who: Identity, asked: Sequence[QuoteIn]) -> list[QuoteOut]:
        """Return one answer for each, in order, each as if it alone were submitted now.

        Raises:
            Unavailable: JupyterHub does not answer which groups the user is in.
        """
        c = self.context
        now = c.clock()
        snapshot = SnapshotReader.of(c).snapshot(now)
        groups = _Groups(Membership.of(c), who.name, {})
        answers: list[QuoteOut | None] = []
        admitted: list[PendingRequest] = []
        for number, each in enumerate(asked):
            try:
                group = groups.of(each.group)
                request = _waiting(number, who.name, group, each, now)
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
                answers.append(_refused(each, refusal))
                continue
            answers.append(None)
            admitted.append(request)
        waits = iter(quotes(snapshot, admitted, now) if admitted else ())
        requests = iter(admitted)
        return [each or _admitted(next(requests), next(waits), snapshot, now) for each in answers]


def _waiting(number: int, owner: str, group: str, asked: QuoteIn, now: float) -> PendingRequest:
    kind = Kind(asked.kind)
    return PendingRequest(
        id=f"~{number}",  # sorts after every real id
        kind=kind,
        owner=owner,
        group=group,
        devices=asked.devices,
        seconds=asked.seconds,
        submitted_at=now,
        model=asked.model,
        priority=class_of(kind),
        preemptible=asked.preemptible and kind is Kind.JOB,
    )


def _refused(asked: QuoteIn, refusal: Refused) -> QuoteOut:
    return QuoteOut(
        admitted=False,
        sentence=str(refusal),
        group=asked.group,
        devices=asked.devices,
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
    """Return what the owner uses of the maximum per member, where that holds the request."""
    group = next((each for each in snapshot.groups if each.name == wait.detail), None)
    if wait.reason is not Reason.USER_MAXIMUM or group is None:
        return None
    own = (each for each in snapshot.allocations if each.owner == request.owner)
    used = Tally(GroupTree(snapshot.groups), own).of_user(group.name, request.owner)
    maximum = group.max_devices_per_user
    if used + request.devices <= maximum:
        return None  # the owner's queued requests count as well
    return OwnUsage(group=group.name, used=used, maximum=maximum)
