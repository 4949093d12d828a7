"""Queries on past usage and their results: sums of the ledger, wait times, and utilization.

Time spans are half open: they include ``since`` and exclude ``until``. Days are in UTC, so that
a charge belongs to the same day for all users and every day has 24 hours.
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
"""Upper bounds, in seconds, of the buckets of the wait time histogram."""


class UsageBy(StrEnum):
    """The key that device-seconds are summed by."""

    OWNER = "owner"
    """A user in one group."""
    USER = "user"
    """A user in all of their groups."""
    GROUP = "group"
    """A group with its descendants."""
    MODEL = "model"
    """A device model. The charge of a lease is divided equally between its devices."""
    OWNER_MODEL = "owner-model"
    """A user in one group, on one device model."""
    DAY = "day"
    WEEK = "week"
    """Seven days from Monday."""
    TERM = "term"
    """A term of the site's calendar; days outside all terms are summed in one row."""
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFilter:
    """A filter on the ledger: all given fields must match, None matches all.

    Attributes:
        reader: only charges of this user, or of the groups in ``reader_groups``.
        since, until: only the part of an entry between them counts.
    """

    owner: str | None = None
    groups: frozenset[str] | None = None
    reader: str | None = None
    reader_groups: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None

    def takes(self, owner: str, group: str) -> bool:
        """Whether the filter matches the usage of this owner in this group."""
        return (
            self.owner in (None, owner)
            and (self.groups is None or group in self.groups)
            and (self.reader in (None, owner) or group in self.reader_groups)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Device-seconds of one value of the key that they are summed by.

    Attributes:
        owner, group: empty if the row is a sum over all of them.
        day, week: the start of the day or week.
        term: empty also for days outside all terms.
        own: of a group, the usage without its descendants.
        above: of a group, the nearest ancestor that has a row.
        model: empty also for devices that the store no longer knows.
        charged: in the ledger.
        open: used since the last ledger entry.
        first, last: the start and end of the usage.
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
    """The first grant of a request: when, and after how many seconds in the queue."""

    kind: Kind
    at: float
    waited: float
    owner: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRow:
    """Wait times of requests that were first granted devices in one part of a window.

    Both percentiles are actual wait times in seconds (nearest rank).
    """

    bucket: int
    kind: Kind
    count: int
    median: float
    ninetieth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Wait statistics of the parts of a window, and of the whole window as bucket 0."""

    parts: tuple[WaitRow, ...]
    whole: tuple[WaitRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The amount that began, or ended, in one part of a window.

    Attributes:
        offset: the sum of amount times seconds since the start of the window.
    """

    bucket: int
    amount: float
    offset: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Starts and ends of leases (in devices) and of waits for devices (in requests).

    A lease or wait that extends into the window counts as begun at its start. A request waits
    until it is first granted its devices, or ends.
    """

    leased: tuple[Flow, ...]
    released: tuple[Flow, ...]
    queued: tuple[Flow, ...]
    left: tuple[Flow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The number of healthy devices, not in quarantine, from ``at`` on."""

    at: float
    healthy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCount:
    """The wait time histogram of one kind, cumulative over ``WAIT_BOUNDS``."""

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
