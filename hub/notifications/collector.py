"""Turn events of requests, released feedback and paused schedules into entries of the outbox.

Entries of one channel that come close together are sent as one message: an ordinary entry is due a
minute after its event, and one that needs an answer at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..messages import notifications as messages
from ..messages.job_signs import TITLES
from ..records.leases import SignKind
from ..records.requests import CauseCode, RequestFilter, RequestRecord
from ..records.usage import LedgerFilter, UsageBy
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL, State
from ..schemas.notifications.events import NotificationEvent
from ..transitions.job_signs import FOUND_EVENT
from ..usage.rollup import monday
from .channel_store import ChannelStore
from .outbox_store import OutboxStore
from .records import Channel, NewEntry, PausedSchedule, ReleasedFeedback, RequestEvent

DIGEST_SECONDS: Final = 60.0
"""How long an ordinary notification waits for others."""
GIVEN_UP_SECONDS: Final = 86400.0
"""How long an ordinary notification is retried."""
QUEUED_SECONDS: Final = 60.0
"""A session or job that waited less is not announced as ready: its owner is still there."""
ROWS_EVERY: Final = 20.0
"""Seconds between two readings of released feedback and of paused schedules."""
_OVERLAP: Final = 120.0
"""They are read again for so long: its times are those of transactions that ran at the time."""
_LIMIT: Final = 1000
_KINDS: Final = frozenset({"state", "idle_warning", "notice", "budget_low", FOUND_EVENT})
_BY_OWNER: Final = ("Cancelled by its owner", "Halted by its owner")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A notification before it is addressed; of several events, the first chosen one counts."""

    events: tuple[NotificationEvent, ...]
    key: str
    text: str
    path: str
    at: float
    due_at: float
    expires_at: float


@dataclass(slots=True, eq=False)
class Collector:
    """Called by one thread; what it keeps in memory may be lost.

    Attributes:
        claim_seconds: how long a granted device is held for its owner.
    """

    store: Store
    channels: ChannelStore
    outbox: OutboxStore
    clock: Clock
    claim_seconds: float
    _position: int | None = None
    _stored: int = 0
    _rows_at: float = field(default=0.0)
    _week_told: float = 0.0
    """End of the week of which all teachers were told since the start."""

    def collect(self) -> int:
        """Put everything that is new into the outbox; return the number of entries."""
        if self._position is None:
            self._position = self._stored = self.outbox.position()
        chosen = self.channels.chosen()
        if not chosen:
            self._position = max(self._position, self.outbox.newest_event())
            return self._advance([])
        entries: list[NewEntry] = []
        found, position = self.outbox.events_after(
            self._position, list(chosen), _KINDS, limit=_LIMIT
        )
        requests = self._requests(found)
        for event in found:
            request = requests.get(event.request_id)
            if request is not None:
                for draft in self._drafts(event, request):
                    entries += _addressed(draft, chosen[event.owner])
        entries += self._of_rows(chosen)
        self._position = position
        return self._advance(entries)

    def _advance(self, entries: list[NewEntry]) -> int:
        """Store entries and position; without entries only now and then, as nothing is lost."""
        assert self._position is not None
        if not entries and self._position - self._stored < _LIMIT:
            return 0
        added = self.outbox.put(entries, position=self._position)
        self._stored = self._position
        return added

    def _requests(self, found: tuple[RequestEvent, ...]) -> Mapping[str, RequestRecord]:
        ids = frozenset(event.request_id for event in found)
        if not ids:
            return {}
        which = RequestFilter(ids=ids, limit=len(ids))
        return {request.id: request for request in self.store.requests(which)}

    def _drafts(self, event: RequestEvent, request: RequestRecord) -> Iterator[_Draft]:
        if request.kind is Kind.SESSION:
            yield from self._of_session(event, request)
        elif request.kind is Kind.JOB:
            yield from _of_job(event, request)
        if event.kind == "budget_low":
            yield from _of_budget(event)

    def _of_session(self, event: RequestEvent, request: RequestRecord) -> Iterator[_Draft]:
        title, path = messages.title_of(request), ""
        ready = NotificationEvent.SESSION_READY
        state = _state(event)
        if state is State.GRANTED and request.unclaimed and request.state is State.GRANTED:
            until = event.at + self.claim_seconds
            text = messages.claim_sentence(title, until)
            yield _urgent(event, (ready,), text, path, until)
        elif state is State.RUNNING and not request.claim and request.lease is not None:
            waited = request.lease.granted_at - request.submitted_at
            first = event.epoch == 1 and request.state is State.RUNNING
            if first and waited >= QUEUED_SECONDS:
                text = messages.ready_sentence(title, waited)
                yield _urgent(event, (ready,), text, path, event.at + request.seconds)
        elif event.kind == "idle_warning" and request.warning is not None:
            until = _number(event, "stops_at")
            text = messages.idle_sentence(title, until)
            yield _urgent(event, (NotificationEvent.SESSION_STOP,), text, path, until)
        elif event.kind == "notice":
            until = _number(event, "stops_at")
            again = event.data.get("comes_back") is True
            text = messages.notice_stop_sentence(f"The session {title}", until, comes_back=again)
            yield _urgent(event, (NotificationEvent.SESSION_STOP,), text, path, until)

    def _of_rows(self, chosen: Mapping[str, tuple[Channel, ...]]) -> list[NewEntry]:
        """Return entries about what is no event of a request."""
        now = self.clock()
        if now - self._rows_at < ROWS_EVERY:
            return []
        # After a start, what happened while the service was away is read as well.
        since = self._rows_at - _OVERLAP if self._rows_at else now - GIVEN_UP_SECONDS
        self._rows_at = now
        found: list[tuple[str, _Draft]] = []
        if owners := _asking(chosen, NotificationEvent.FEEDBACK):
            released = self.outbox.feedback_since(owners, since)
            found += [(each.owner, _of_feedback(each)) for each in released]
        if owners := _asking(chosen, NotificationEvent.JOB_ATTENTION):
            paused = self.outbox.schedules_paused_since(owners, since)
            found += [(each.owner, _of_schedule(each)) for each in paused]
        if owners := _asking(chosen, NotificationEvent.UNUSED_DEVICES):
            found += self._of_week(owners, now)
        return [entry for owner, draft in found for entry in _addressed(draft, chosen[owner])]

    def _of_week(self, owners: Sequence[str], now: float) -> Iterator[tuple[str, _Draft]]:
        """Yield the groups whose teachers can read the report of a week since last midnight."""
        ended = monday(now)
        if now - ended >= GIVEN_UP_SECONDS or self._week_told == ended:
            return
        begins = monday(ended - 1.0)
        for owner in owners:
            for group in sorted(self.store.taught_by(owner)):
                which = LedgerFilter(groups=frozenset({group}), since=begins, until=ended)
                if self.store.used(which, UsageBy.GROUP, now=now):
                    yield owner, _week_draft(group, begins, ended)
        self._week_told = ended


def _week_draft(group: str, begins: float, ended: float) -> _Draft:
    return _Draft(
        events=(NotificationEvent.UNUSED_DEVICES,),
        key=f"unused/{group}/{begins:.0f}",
        text=messages.week_sentence(group, begins),
        path=f"efficiency?group={quote(group)}",
        at=ended,
        due_at=ended + DIGEST_SECONDS,
        expires_at=ended + GIVEN_UP_SECONDS,
    )


def _asking(chosen: Mapping[str, tuple[Channel, ...]], event: NotificationEvent) -> list[str]:
    """Return the users with a channel that tells of an event."""
    return [
        owner
        for owner, channels in chosen.items()
        if any(event in channel.chosen for channel in channels)
    ]


def _of_job(event: RequestEvent, request: RequestRecord) -> Iterator[_Draft]:
    title, path = messages.title_of(request), f"requests/{request.id}"
    attention, ended = NotificationEvent.JOB_ATTENTION, NotificationEvent.JOB_ENDED
    state = _state(event)
    if state is State.RUNNING and event.epoch == 1:
        lease = request.lease
        granted = event.at if lease is None or lease.epoch != 1 else lease.granted_at
        text = messages.started_sentence(title, granted - request.submitted_at)
        yield _ordinary(event, (NotificationEvent.JOB_STARTED,), text, path)
    elif state in TERMINAL:
        cause = event.data.get("cause")
        code = str(cause.get("code", "")) if isinstance(cause, dict) else ""
        if _ended_by_owner(cause):
            return
        ran = None if request.started_at is None else event.at - request.started_at
        text = messages.ended_sentence(title, state, code, ran)
        wanted = (ended,) if state is State.SUCCEEDED else (attention, ended)
        yield _ordinary(event, wanted, text, path)
    elif state is State.LOST:
        yield _ordinary(event, (attention,), messages.lost_sentence(title), path)
    elif event.kind == FOUND_EVENT:
        sign = TITLES[SignKind(str(event.data.get("sign")))]
        yield _ordinary(
            event, (NotificationEvent.JOB_SIGN,), messages.sign_sentence(title, sign), path
        )
    elif event.kind == "notice":
        until = _number(event, "stops_at")
        again = event.data.get("comes_back") is True
        if event.data.get("why") != "halt":
            text = messages.notice_stop_sentence(f"The job {title}", until, comes_back=again)
            yield _urgent(event, (attention,), text, path, until)


def _of_budget(event: RequestEvent) -> Iterator[_Draft]:
    group, of = str(event.data.get("group", "")), _number(event, "of")
    if group and of > 0:
        day = datetime.fromtimestamp(event.at, UTC).date()
        yield _Draft(
            events=(NotificationEvent.BUDGET_LOW,),
            key=f"budget/{group}/{day}",
            text=messages.budget_sentence(group, _number(event, "used") / of),
            path="usage",
            at=event.at,
            due_at=event.at + DIGEST_SECONDS,
            expires_at=event.at + GIVEN_UP_SECONDS,
        )


def _of_feedback(released: ReleasedFeedback) -> _Draft:
    return _Draft(
        events=(NotificationEvent.FEEDBACK,),
        key=f"feedback/{released.submission}/{released.released_at:.3f}",
        text=messages.feedback_sentence(released.course, released.assignment),
        path=f"course/{released.course}/assignment/{released.assignment}",
        at=released.released_at,
        due_at=released.released_at + DIGEST_SECONDS,
        expires_at=released.released_at + GIVEN_UP_SECONDS,
    )


def _of_schedule(paused: PausedSchedule) -> _Draft:
    return _Draft(
        events=(NotificationEvent.JOB_ATTENTION,),
        key=f"schedule/{paused.id}/{paused.paused_at:.3f}",
        text=messages.paused_sentence(paused.what, paused.id),
        path="schedules",
        at=paused.paused_at,
        due_at=paused.paused_at + DIGEST_SECONDS,
        expires_at=paused.paused_at + GIVEN_UP_SECONDS,
    )


def _ordinary(
    event: RequestEvent, events: tuple[NotificationEvent, ...], text: str, path: str
) -> _Draft:
    """Return a notification that may wait for others."""
    return _Draft(
        events=events,
        key=f"event/{event.id}",
        text=text,
        path=path,
        at=event.at,
        due_at=event.at + DIGEST_SECONDS,
        expires_at=event.at + GIVEN_UP_SECONDS,
    )


def _urgent(
    event: RequestEvent, events: tuple[NotificationEvent, ...], text: str, path: str, until: float
) -> _Draft:
    """Return a notification that is due at once, and of no interest after ``until``."""
    ordinary = _ordinary(event, events, text, path)
    return replace(ordinary, due_at=event.at, expires_at=until)


def _addressed(draft: _Draft, channels: tuple[Channel, ...]) -> Iterator[NewEntry]:
    """Yield an entry for each channel that tells of the event, and did so when it happened."""
    for channel in channels:
        for event in draft.events:
            since = channel.chosen.get(event)
            if since is not None and draft.at >= since:
                yield NewEntry(
                    channel=channel.id,
                    event=event,
                    key=draft.key,
                    text=draft.text,
                    path=draft.path,
                    at=draft.at,
                    due_at=draft.due_at,
                    expires_at=draft.expires_at,
                )
                break


def _state(event: RequestEvent) -> State | None:
    return State(str(event.data.get("state"))) if event.kind == "state" else None


def _number(event: RequestEvent, name: str) -> float:
    found = event.data.get(name)
    return float(found) if isinstance(found, int | float) else event.at


def _ended_by_owner(cause: object) -> bool:
    if not isinstance(cause, dict):
        return False
    by_user = cause.get("code") in (CauseCode.CANCELLED, CauseCode.HALTED)
    return by_user and str(cause.get("message", "")).startswith(_BY_OWNER)
