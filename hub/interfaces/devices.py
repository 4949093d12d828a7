"""The port to the devices of one maker, behind which every accelerator is.

A plug-in is found by entry point (group ``carrel.devices``). The name of the entry point is that of
the driver, and its value is a class without arguments or a function that returns the plug-in::

    [project.entry-points."carrel.devices"]
    acme = "carrel_acme:AcmeDevices"

A plug-in answers four questions: which devices are there and how are they, which variables does a
process need, what does a container need, and what does a container need that lists the devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from ..records.json_value import Json
from ..scheduling.model.devices import Device, DeviceFile, Health


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSignals:
    """Readings of a device that tell of its condition; None for one that its driver does not offer.

    Attributes:
        utilization: mean of the last seconds in percent.
        clock_mhz: present clock of its compute units.
        throttled: why the driver or the hardware lowers the clock now: names of ``ThrottleReason``.
        temperature_celsius: of the chip.
        power_watts: drawn now.
        power_limit_watts: the limit that is enforced now.
        pcie_lanes: present width of its link to the host.
        pcie_replays, corrected_errors: counters; they begin again when the driver is loaded.
        xids: codes of the errors (Xid) that the kernel logged about it in the last minute.
        logged_xids: the numbers and codes of all errors about it that the kernel's log still has.
            The numbers grow until the node is started again; a service that has read the device
            before looks at these, since the clock of the log drifts.
    """

    utilization: float | None = None
    clock_mhz: float | None = None
    throttled: tuple[str, ...] | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    pcie_lanes: float | None = None
    pcie_replays: float | None = None
    corrected_errors: float | None = None
    xids: tuple[int, ...] = ()
    logged_xids: tuple[tuple[int, int], ...] = ()


NO_SIGNALS: Final = DeviceSignals()


class ThrottleReason(StrEnum):
    """Why a device runs at a lower clock than it could."""

    HARDWARE_THERMAL = "hardware thermal slowdown"
    POWER_BRAKE = "power brake"
    HARDWARE = "hardware slowdown"
    THERMAL = "thermal slowdown"
    POWER_CAP = "power cap"
    """The power limit: ordinary for a device under full load."""
    CHOSEN = "clock setting"
    """A user or administrator chose a lower clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReading:
    """What a validation measured on a device.

    Attributes:
        rates: by test (``compute``, ``memory``, ``copies``, ``collective``), in a unit of the test:
            more is better.
        problem: what failed on the device, as a sentence: an error, a wrong result, no end.
        unavailable: why it could not be made, as a sentence; it then says nothing of the device.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""
    unavailable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDevice:
    """A device as its driver reports it.

    Attributes:
        id: the same after every restart, and unique in the pool: a serial number or UUID.
        index: position on its machine among the devices of this driver.
        model: product name, with the maker's: requests and quotas name it.
        memory_bytes: 0 if unknown.
        health: ``SICK`` quarantines the device and ends the work on it.
        why: the sentence behind a health other than ``OK``.
        pids: the processes that compute on it, whether or not Carrel started them.
        utilization: the highest sample of the last seconds in percent; None if not measured.
        mean_utilization: the mean of the samples; None means ``utilization``.
        used_bytes: device memory in use.
        files: what a container needs to use it; empty where the engine gives devices by name.
        signals: readings in which a fault may show before the driver reports one.
    """

    id: str
    index: int
    model: str
    memory_bytes: int = 0
    health: Health = Health.OK
    why: str = ""
    pids: tuple[int, ...] = ()
    utilization: int | None = None
    mean_utilization: float | None = None
    used_bytes: int = 0
    files: tuple[DeviceFile, ...] = ()
    signals: DeviceSignals = NO_SIGNALS


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReport:
    """The devices that a driver lists.

    Attributes:
        reason: sentences that explain missing devices; empty if none is missing.
        installed: whether the machine has this driver. Without one it has no such devices, which is
            not an error, and the driver is queried less often.
    """

    devices: tuple[DriverDevice, ...] = ()
    reason: str = ""
    installed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProblem:
    """A driver or plug-in that failed: its devices on the node take no new work.

    Attributes:
        why: a sentence.
    """

    node: str
    driver: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDevices:
    """What a container engine says about devices.

    Attributes:
        names: devices that it gives by name (CDI): ``nvidia.com/gpu=GPU-…``.
        runtimes: names of its runtimes.
    """

    names: frozenset[str] = frozenset()
    runtimes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerDevices:
    """What the create call of a container contains, so that it gets devices.

    Attributes:
        files: files of the host to add, with their groups.
        requests: entries of ``HostConfig.DeviceRequests`` of Docker's API.
        environment: variables that override those of ``DevicePlugin.environment``.
    """

    files: tuple[DeviceFile, ...] = ()
    requests: tuple[Mapping[str, Json], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class DevicePlugin(Protocol):
    """The devices of one maker.

    Attributes:
        maker: for messages: ``NVIDIA``.
    """

    maker: str

    def list_devices(self) -> DriverReport:
        """Query the driver.

        Called in a process of its own every ten seconds: it may hang, crash or raise, which makes
        these devices unavailable and affects no others. A device without an id is left out and
        explained in ``reason``; a reading that the driver does not offer is left out.
        """

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        """Return the variables that show a process these devices of this maker and no others.

        Called for every process, also without devices: it then hides all. They replace variables
        of users and images.
        """

    def in_container(self, devices: Sequence[Device], names: frozenset[str]) -> ContainerDevices:
        """Return what a container needs to use these devices, at least one.

        Args:
            names: as in ``EngineDevices``.
        """

    def probe(self, engine: EngineDevices) -> ContainerDevices | None:
        """Return what a container needs that calls ``list_devices`` on the engine's machine.

        None if the engine cannot give devices of this maker. Only used for other machines.
        """
