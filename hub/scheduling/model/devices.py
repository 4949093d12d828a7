"""Devices of the pool, their health, and the cordons of devices and nodes.

All times are seconds since the epoch (UTC) as floats. The program that queries a driver imports
this module each time that it starts, so that it imports little itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Health(StrEnum):
    """Health of a device."""

    OK = "ok"
    BUSY = "busy"
    """A process that Carrel did not start uses it."""
    SICK = "sick"
    """It reports errors."""
    GONE = "gone"
    """It was known before and is no longer reported."""


class MarkKind(StrEnum):
    """Kind of a cordon of a device or node."""

    DRAIN = "drain"
    """Drained: running work ends by itself, or by a date."""
    QUARANTINE = "quarantine"
    """Quarantined until it is released: by an administrator, or by clean validations if the service
    itself quarantined it."""
    UNREACHABLE = "silent"
    """Of a node: its engine does not answer, or cannot start anything now. Of a device: its driver
    cannot be read."""
    VALIDATION = "validation"
    """Of a device: the service measures it, for some seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A cordon: nothing new starts on a device, or on a whole node, until the mark is removed.

    Attributes:
        target: id of a device, or name of a node.
        why: the reason, or the evidence of a fault.
        by: the administrator who set it; empty where the service itself found a fault.
        until: of a drain: work that still runs then is stopped; None: it ends by itself.
    """

    target: str
    kind: MarkKind
    since: float
    why: str = ""
    by: str = ""
    until: float | None = None

    @property
    def fault(self) -> bool:
        """Whether the service set it because the device failed."""
        return self.kind is MarkKind.QUARANTINE and not self.by


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFile:
    """A file in ``/dev`` by which programs use a device.

    Attributes:
        group: numeric id of the group that may open it, on the machine of the device.
    """

    path: str
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An accelerator: a GPU, or a part of one (MIG instance, compute partition).

    Attributes:
        id: unique in the pool, and what its driver calls it (``GPU-…``, ``MIG-…``; ``SIM-…`` for a
            simulated one).
        node: name of the host.
        index: position among the devices of the same driver on the node.
        model: product name, as the driver reports it.
        memory_bytes: size of its memory.
        simulated: True for a device without hardware.
        switch: network switch of its node; empty if unknown.
        driver: name of the plug-in that lists it (entry point group ``carrel.devices``).
        files: what a container needs to use it; empty where the engine gives devices by name.
        health: only ``OK`` devices are allocated.
        why: the sentence behind a health other than ``OK``.
        marks: drains and quarantines of it or its node.
    """

    id: str
    node: str
    index: int
    model: str
    memory_bytes: int
    simulated: bool = False
    switch: str = ""
    driver: str = "nvidia"
    files: tuple[DeviceFile, ...] = ()
    health: Health = Health.OK
    why: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def schedulable(self) -> bool:
        """Whether new work may start on it once it is free."""
        return self.health is Health.OK and not self.marks

    @property
    def drain(self) -> Mark | None:
        """The drain that ends first, of the device or its node."""
        found = [mark for mark in self.marks if mark.kind is MarkKind.DRAIN]
        return min(found, key=_end, default=None)

    @property
    def unreachable(self) -> Mark | None:
        """The mark of a node whose engine does not answer."""
        return next((mark for mark in self.marks if mark.kind is MarkKind.UNREACHABLE), None)

    @property
    def validation(self) -> Mark | None:
        """The mark of a device that the service measures now."""
        return next((mark for mark in self.marks if mark.kind is MarkKind.VALIDATION), None)

    @property
    def draining(self) -> bool:
        return self.drain is not None

    @property
    def quarantine(self) -> Mark | None:
        return next((mark for mark in self.marks if mark.kind is MarkKind.QUARANTINE), None)


def _end(drain: Mark) -> float:
    return inf if drain.until is None else drain.until
