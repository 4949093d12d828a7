"""What the desk shows, gathered in one go; pages only lay it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ..admission import GroupChoice
from ..commands import Commands
from ..errors import CarrelError, Conflict, InvalidInput, NotAMember
from ..ports.world import Identity
from ..scheduling.lifecycle import LIVE, TERMINAL, State
from ..scheduling.model import Kind
from ..wire import PoolOut, RequestOut, SessionIn, UsageReport

_WAITING = frozenset({State.QUEUED})
_LISTED = 200
_JOBS_SHOWN = 20
_OTHERS_SHOWN = 50
_RECENT_SECONDS = 24 * 3600.0
_ORDERLY = frozenset({"succeeded", "stopped", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Everything on the desk that changes by itself.

    Attributes:
        sessions: of mine, those that have not ended.
        mishaps: of mine, sessions of the last day that ended otherwise than they should.
        jobs: my newest ones.
        waiting: of mine, the newest in the queue.
        others: requests of other people that I may see as a teacher or an administrator,
            live ones first.
    """

    sessions: tuple[RequestOut, ...]
    mishaps: tuple[RequestOut, ...]
    jobs: tuple[RequestOut, ...]
    waiting: tuple[RequestOut, ...]
    others: tuple[RequestOut, ...]
    pool: PoolOut
    usage: UsageReport

    @property
    def first_in_line(self) -> RequestOut | None:
        """Of what I wait for, what comes next."""
        waiting = [r for r in (*self.sessions, *self.waiting) if r.wait is not None]
        return min(waiting, key=lambda r: r.wait.place if r.wait else 0, default=None)

    @property
    def charging(self) -> int:
        """Devices that count towards my device-seconds just now."""
        return sum(tile.state == "yours" for tile in self.pool.devices)


def gather(commands: Commands, who: Identity, *, now: float) -> Desk:
    """Reads the desk of one person, without asking the hub for anything. Blocks."""
    newest = partial(commands.requests, who, limit=_LISTED)
    # What is alive is asked for by itself: nothing that came after it pushes it off the desk.
    ended = newest(kind=Kind.SESSION, states=TERMINAL, mine=True)
    seen = (
        *newest(kind=None, states=LIVE, mine=False),
        *newest(kind=None, states=TERMINAL, mine=False),
    )
    return Desk(
        sessions=tuple(newest(kind=Kind.SESSION, states=LIVE, mine=True)),
        mishaps=tuple(r for r in ended if _mishap(r, now))[:3],
        jobs=tuple(newest(kind=Kind.JOB, states=None, mine=True)[:_JOBS_SHOWN]),
        waiting=tuple(newest(kind=None, states=_WAITING, mine=True)),
        others=tuple(r for r in seen if r.owner != who.name)[:_OTHERS_SHOWN],
        pool=commands.pool(who),
        usage=commands.usage(who),
    )


def _mishap(request: RequestOut, now: float) -> bool:
    return (
        request.ended
        and request.cause is not None
        and request.cause.code not in _ORDERLY
        and request.ended_at is not None
        and now - request.ended_at < _RECENT_SECONDS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForm:
    """The form that starts a session, as it was filled in, with what was wrong with it."""

    server_name: str = ""
    devices: str = "1"
    hours: str = "1"
    group: str = ""
    problem: str = ""
    accepted: str = ""
    field: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> StartForm:
        return cls(
            server_name=fields.get("server_name", "").strip(),
            devices=fields.get("devices", "").strip(),
            hours=fields.get("hours", "").strip(),
            group=fields.get("group", "").strip(),
        )

    def options(self) -> SessionIn:
        """Raises InvalidInput for what is no number."""
        return SessionIn(
            devices=_number(int, self.devices, "devices", "A whole number, 0 for none."),
            hours=_number(float, self.hours.replace(",", "."), "hours", "A number such as 1.5."),
            group=self.group,
        )

    def refused(self, error: CarrelError, groups: list[GroupChoice]) -> StartForm:
        """The same entries with the refusal beside the field that caused it."""
        return StartForm(
            server_name=self.server_name,
            devices=self.devices,
            hours=self.hours,
            group=self.group,
            problem=error.message,
            accepted=error.accepted,
            field=error.field or self._field_of(error, groups),
        )

    def _field_of(self, error: CarrelError, groups: list[GroupChoice]) -> str:
        if isinstance(error, NotAMember):
            return "group"
        if isinstance(error, Conflict):
            return "server_name"
        chosen = next((group for group in groups if group.name == self.group), None)
        if chosen is None:
            return ""
        options = self.options()
        if not 0 < options.hours * 3600 <= chosen.max_seconds:
            return "hours"
        most = min(chosen.max_devices, chosen.max_devices_per_user)
        return "" if 0 <= options.devices <= most else "devices"


_Number = TypeVar("_Number", int, float)


def _number(kind: Callable[[str], _Number], text: str, field: str, accepted: str) -> _Number:
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} is no number of {field}.", accepted=accepted, field=field
        ) from None


def device_choices(groups: list[GroupChoice]) -> int:
    """The most devices that any of the groups lets one person hold."""
    return max((min(g.max_devices, g.max_devices_per_user) for g in groups), default=0)
