"""Bodies of devices, queue and groups."""

from __future__ import annotations

from typing import Literal, Protocol

from .base import Out
from .calendar import ReservationOut


class DeviceFileOut(Out):
    """A file in ``/dev`` by which programs use a device, and the group that may open it."""

    path: str
    group: int


class DeviceOut(Out):
    """A device, limited to what the caller may see.

    On ``draining`` and ``quarantined`` devices nothing new starts, even if ``state`` shows that the
    device is in use. ``drain_until`` is when remaining requests on it are stopped. ``driver`` is
    the plug-in that lists it. ``evidence`` says what the last runs on it tell about it, to
    administrators only.
    """

    id: str
    node: str
    index: int
    model: str
    memory_bytes: int
    simulated: bool
    driver: str = "nvidia"
    files: list[DeviceFileOut] = []
    state: Literal["free", "yours", "taken", "busy", "sick", "gone", "draining"]
    why: str = ""
    evidence: str = ""
    draining: bool = False
    drain_until: float | None = None
    quarantined: bool = False
    request_id: str | None = None
    owner: str | None = None


class GroupOut(Out):
    """A group that the caller may use, with its current limits."""

    name: str
    max_devices: int
    max_devices_per_user: int
    max_seconds: int
    idle_seconds: int = 0
    """Idle time after which a session with devices is warned; 0 for never."""
    models: list[str] | None = None
    """The device models that it may request; null for all."""
    teachers: list[str] = []


class MemberLimits(Protocol):
    """A group with its current limits, as a user may choose it."""

    @property
    def max_devices(self) -> int: ...

    @property
    def max_devices_per_user(self) -> int: ...


def most_devices(group: MemberLimits) -> int:
    """Return the most devices that one member of a group may use at the same time."""
    return min(group.max_devices, group.max_devices_per_user)


class GroupsOut(Out):
    groups: list[GroupOut]


class QueueEntryOut(Out):
    """A position in the queue; owner, title and ``why`` only if the caller may see them.

    ``sentence`` combines the position and ``why``.
    """

    place: int
    kind: str
    devices: int
    model: str | None = None
    sentence: str
    why: str = ""
    expected_at: float | None = None
    latest_at: float | None = None
    yours: bool
    request_id: str | None = None
    owner: str | None = None
    group: str | None = None
    title: str = ""


class QueueOut(Out):
    queue: list[QueueEntryOut]
    total: int = 0
    """The number of all queued requests; ``queue`` lists the first of them."""


class MeOut(Out):
    name: str
    admin: bool
    groups: list[str]
    teaches: list[str]


class PoolOut(Out):
    """The devices, and the next ``reservations``, during which fewer devices are available.

    ``out_of_service`` is the number that start nothing new: broken, unreachable or draining.
    """

    devices: list[DeviceOut]
    free: int
    total: int
    out_of_service: int = 0
    waiting: int
    simulated: bool
    reservations: list[ReservationOut] = []
