"""Data of the desk page; templates only lay it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...groups.membership import GroupChoice
from ...interfaces.files import HomeUse
from ...messages import requests as request_messages
from ...records.identity import Identity
from ...requests.pagination import RequestQuery
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import LIVE, TERMINAL
from ...schemas import BudgetOut, DeviceOut, PoolOut, RequestOut, UsageReport, most_devices
from ...schemas.calendar import ReservationOut
from ..dependencies.context import WebContext

_LISTED = 200
_JOBS_LIVE = 20
_JOBS_ENDED = 5
_OTHERS_SHOWN = 50
_RESERVED_SHOWN = 3
_ENDED_CHECKED = 20
_RECENT_SECONDS = 24 * 3600.0
_ORDERLY = frozenset({"succeeded", "stopped", "cancelled"})


TILE_STATES = (
    "free", "yours", "held", "taken", "busy", "draining", "quarantined", "sick", "gone",
)  # fmt: skip  # one row, from free to gone


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMeter:
    """Number of devices that the user holds in a group, and the maximum."""

    group: str
    held: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A device on the desk: ``state`` is one of TILE_STATES."""

    device: DeviceOut
    state: str
    why: str


def _tile(device: DeviceOut, held: RequestOut | None, mine: frozenset[str]) -> Tile:
    """Return the most relevant state for the reader: own, held, or out of service."""
    state: str = device.state
    why = device.why
    if held is not None and device.state in ("yours", "taken"):
        state = "held"
        why = "held for you: claim it" if held.id in mine else "held until its owner claims it"
    elif device.quarantined and device.state in ("free", "sick", "draining"):
        state = "quarantined"
    elif device.draining and device.state == "free":
        state = "draining"
    return Tile(device=device, state=state, why=why or request_messages.device_state_meaning(state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The live part of the desk.

    Attributes:
        sessions: own sessions that have not ended.
        mishaps: own sessions of the last day that ended abnormally.
        jobs: own jobs that have not ended, then the newest ended ones.
        groups: groups that the user may use, with their limits.
        budgets: budgets that apply in these groups.
        first_in_line: own queued request that is expected to start next.
        others: requests of other users that the reader may see as a teacher or administrator,
            live ones first.
        home: usage of the home, if it has a limit.
    """

    sessions: tuple[RequestOut, ...]
    mishaps: tuple[RequestOut, ...]
    jobs: tuple[RequestOut, ...]
    first_in_line: RequestOut | None
    others: tuple[RequestOut, ...]
    pool: PoolOut
    usage: UsageReport
    budgets: tuple[BudgetOut, ...]
    groups: tuple[GroupChoice, ...]
    home: HomeUse | None = None

    @property
    def held(self) -> tuple[RequestOut, ...]:
        """Sessions with held devices, by the end of the claim window."""
        found = [r for r in self.sessions if r.claim_by is not None]
        return tuple(sorted(found, key=lambda r: r.claim_by or 0.0))

    @property
    def waits(self) -> bool:
        """Whether any session is queued, so that a notification may follow."""
        return any(r.wait is not None for r in self.sessions)

    @property
    def meters(self) -> tuple[UsageMeter, ...]:
        """The devices used in each group that has devices, and in others with usage."""
        mine = [*self.sessions, *self.jobs]
        held = Counter[str]()
        for request in mine:
            # A preempted request that is queued again still shows its last lease.
            if request.lease is not None and request.lease.released_at is None:
                held[request.group] += len(request.lease.devices)
        most = {group.name: most_devices(group) for group in self.groups}
        names = dict.fromkeys([*most, *held])
        return tuple(
            UsageMeter(group=name, held=held[name], most=most.get(name, 0))
            for name in names
            if held[name] or most.get(name, 0)
        )

    def may_extend(self, request: RequestOut, seconds: float, now: float) -> bool:
        """Return whether the group allows this extension, and it is neither preempted nor drained.

        Whether other requests wait for the devices is checked when the user clicks.
        """
        if request.warning is not None and not request.warning.may_extend:
            return False
        group = next((group for group in self.groups if group.name == request.group), None)
        left = max(0.0, (request.ends_by or now) - now)
        return group is None or left + seconds <= group.max_seconds

    @property
    def reservations(self) -> list[ReservationOut]:
        """The next reservations of all groups."""
        return self.pool.reservations[:_RESERVED_SHOWN]

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The devices of the pool, in order."""
        held = {
            device.id: request
            for request in (*self.sessions, *self.others)
            if request.claim_by is not None and request.lease is not None
            for device in request.lease.devices
        }
        mine = frozenset(request.id for request in self.sessions)
        return tuple(_tile(device, held.get(device.id), mine) for device in self.pool.devices)

    @property
    def legend(self) -> tuple[tuple[str, int], ...]:
        """The number of devices in each state, in the order of TILE_STATES."""
        counted = Counter(tile.state for tile in self.tiles)
        return tuple((state, counted[state]) for state in TILE_STATES if counted[state])

    @property
    def charging(self) -> int:
        """The number of devices that are being charged to the user."""
        return sum(tile.state == "yours" for tile in self.pool.devices)


def gather(
    web: WebContext, who: Identity, groups: Sequence[GroupChoice] = (), *, now: float
) -> Desk:
    """Read the desk of one user, without calls to JupyterHub: run it within ``together``."""
    lists = [
        # Live requests are read separately, so that newer ones do not displace them.
        RequestQuery(kind=Kind.SESSION, states=LIVE, limit=_LISTED),
        RequestQuery(kind=Kind.SESSION, states=TERMINAL, limit=_ENDED_CHECKED),
        RequestQuery(kind=Kind.JOB, states=LIVE, limit=_JOBS_LIVE),
        RequestQuery(kind=Kind.JOB, states=TERMINAL, limit=_JOBS_ENDED),
    ]
    if who.admin or web.context.store.taught_by(who.name):
        lists.append(RequestQuery(states=LIVE, mine=False, limit=2 * _OTHERS_SHOWN, brief=True))
    pages = web.requests.several(who, lists)
    sessions, ended, live, done, *seen = (tuple(page.requests) for page in pages)
    names = [group.name for group in groups]
    return Desk(
        sessions=sessions,
        mishaps=tuple(r for r in ended if _mishap(r, now))[:3],
        jobs=(*live, *done),
        first_in_line=web.requests.next_in_line(who),
        others=_others(web, who, *seen),
        pool=web.pool.pool(who, groups_of=names),
        usage=web.usage.totals(who),
        budgets=tuple(web.budgets.budgets(who, groups_of=names)),
        groups=tuple(groups),
        home=web.context.files.home_use(who.name),
    )


def _others(
    web: WebContext, who: Identity, live: Sequence[RequestOut] | None = None
) -> tuple[RequestOut, ...]:
    """Return the requests of other users, live ones first; none for plain members."""
    if live is None:
        return ()
    found = [request for request in live if request.owner != who.name]
    if len(found) < _OTHERS_SHOWN:
        ended = RequestQuery(states=TERMINAL, mine=False, limit=2 * _OTHERS_SHOWN, brief=True)
        seen = web.requests.several(who, [ended])[0].requests
        found += [request for request in seen if request.owner != who.name]
    return tuple(found[:_OTHERS_SHOWN])


def _mishap(request: RequestOut, now: float) -> bool:
    return (
        request.ended
        and request.cause is not None
        and request.cause.code not in _ORDERLY
        and request.ended_at is not None
        and now - request.ended_at < _RECENT_SECONDS
    )
