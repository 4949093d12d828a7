"""What the store answers about the past: sums of the ledger, waits, and how full the pool was.

Spans of time are half open: ``since`` belongs to them, ``until`` does not. Days are those of
UTC, so that a charge belongs to the same day for everybody and no day has 23 hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ..scheduling.model.snapshot import Kind
from .requests import CauseCode

DAY = 86400.0
WAIT_BOUNDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)
"""Upper bounds, in seconds, of the classes into which all waits are counted."""


class UsageBy(StrEnum):
    """What device-seconds are added up for."""

    OWNER = "owner"
    """A person in a group."""
    USER = "user"
    """A person, in all of their groups."""
    GROUP = "group"
    """A group with those below it."""
    MODEL = "model"
    """A model of devices. Each device of a lease has the same part of what it is charged."""
    DAY = "day"
    WEEK = "week"
    """Seven days from Monday."""
    TERM = "term"
    """A term of the site's calendar; the days that are in none stand together."""
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFilter:
    """None means: any; what is given must all hold.

    Attributes:
        reader: only what this person was charged, or the groups in ``reader_groups``.
        since, until: of a line that goes beyond, the part between them counts.
    """

    owner: str | None = None
    groups: frozenset[str] | None = None
    reader: str | None = None
    reader_groups: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None

    def takes(self, owner: str, group: str) -> bool:
        """Whether it asks for what this person used in this group."""
        return (
            self.owner in (None, owner)
            and (self.groups is None or group in self.groups)
            and (self.reader in (None, owner) or group in self.reader_groups)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Device-seconds of one owner and group, or of one of what else they are added up for.

    Attributes:
        owner, group: empty where they are added up over all of them.
        day, week: when that day or week begins.
        term: empty also for the days that are in no term.
        own: of a group, what was used in it and not in one below it.
        above: of a group, the nearest one above it that has a row as well.
        model: empty also for devices that the store no longer knows.
        charged: stands in the ledger.
        open: used since its last line.
        first, last: between which they were used.
    """

    owner: str = ""
    group: str = ""
    request_id: str = ""
    day: float | None = None
    week: float | None = None
    term: str = ""
    own: float | None = None
    above: str = ""
    model: str = ""
    charged: float = 0.0
    open: float = 0.0
    first: float = 0.0
    last: float = 0.0

    @property
    def total(self) -> float:
        return self.charged + self.open


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRequests:
    """The newest rows by request, and how many rows there are."""

    rows: tuple[UsageRow, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A span of time in ``buckets`` equal parts; of one group or of all."""

    since: float
    until: float
    buckets: int
    group: str | None = None

    @property
    def width(self) -> float:
        return (self.until - self.since) / self.buckets


class Granted(NamedTuple):
    """That a request got its devices for the first time, when, and after how many seconds."""

    kind: Kind
    at: float
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRow:
    """How long those waited for devices who were first granted them in one part of a window.

    Both figures are real wait times (nearest rank), in seconds.
    """

    bucket: int
    kind: Kind
    count: int
    median: float
    ninetieth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Of each part of a window, and of the whole of it, which counts as its part 0."""

    parts: tuple[WaitRow, ...]
    whole: tuple[WaitRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What began, or ended, in one part of a window.

    Attributes:
        amount: how much of it.
        offset: the sum of amount times seconds since the window began.
    """

    bucket: int
    amount: float
    offset: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Begun and ended: devices on lease, and requests that wait for devices.

    What began before the window and lasts into it, began with it. A request waits until it is
    first granted its devices, or ends.
    """

    leased: tuple[Flow, ...]
    released: tuple[Flow, ...]
    queued: tuple[Flow, ...]
    left: tuple[Flow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """From ``at`` on there were so many healthy devices: in order, and not in quarantine."""

    at: float
    healthy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCount:
    """All waits of a kind: how many were at most as long as each of ``WAIT_BOUNDS``."""

    within: tuple[int, ...]
    count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Counts over everything that is stored, for monitoring."""

    ends: Mapping[tuple[Kind, CauseCode], int]
    leases: Mapping[Kind, int]
    """Live ones."""
    waits: Mapping[Kind, WaitCount]
    size_bytes: int
