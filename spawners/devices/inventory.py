"""Read the devices of this machine from all plug-ins.

``DeviceInventory.read()`` queries each driver in a child process of its own
(``python -m carrel.spawners.devices.driver``), because a thread that hangs in a driver call cannot
be killed and would block the interpreter's exit. Even SIGKILL may not end a child that hangs in the
kernel: that driver is then not queried again until that child has ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, UnionType
from typing import Any, Final

from ...hub.errors import Unavailable
from ...hub.interfaces.devices import NO_SIGNALS, DeviceSignals, DriverProblem
from ...hub.scheduling.model.snapshot import Device, DeviceFile, Health
from .plugins import InstalledPlugin, installed_plugins
from .signals import parse_signals

TIMEOUT_SECONDS: Final = 10.0
ABSENT_SECONDS: Final = 60.0
"""Interval between two queries of a driver that is not installed."""
_KILL_SECONDS: Final = 1.0
_COLLECTION_SECONDS: Final = 1.0
"""For the report of a driver that has answered while another one took the whole time."""
_TYPES: Final[Mapping[str, type | UnionType]] = MappingProxyType(
    {
        "id": str,
        "index": int,
        "model": str,
        "memory_bytes": int,
        "why": str,
        "pids": list,
        "utilization": int | float | None,
        "used_bytes": int,
    }
)
"""Types of the values of a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedDevice:
    """A device and the processes that compute on it, whether or not Carrel started them."""

    device: Device
    pids: tuple[int, ...] = ()
    utilization: int | None = None
    """Recent utilization in percent; None if the driver cannot measure it."""
    mean_utilization: float | None = None
    """Mean of the driver's samples of the last seconds in percent; None without any."""
    used_bytes: int = 0
    """Device memory in use."""
    signals: DeviceSignals = NO_SIGNALS


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverInventory:
    """The devices that one driver lists on a node.

    Attributes:
        reason: sentences that explain missing devices; empty if none is missing.
        installed: whether the node has this driver.
    """

    found: tuple[DetectedDevice, ...] = ()
    reason: str = ""
    installed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInventory:
    """The devices that all drivers list on a node.

    Attributes:
        reason: sentences that explain missing devices; empty if none is missing.
        problems: the drivers that failed.
    """

    found: tuple[DetectedDevice, ...] = ()
    reason: str = ""
    problems: tuple[DriverProblem, ...] = ()


def merge(
    node: str, answers: Iterable[tuple[InstalledPlugin, DriverInventory | Unavailable]]
) -> NodeInventory:
    """Return the inventory of a node from the answers of its drivers.

    That a driver is not installed is a reason only where no driver lists a device. Of devices with
    one id, the first is kept.
    """
    found: dict[str, DetectedDevice] = {}
    reasons: list[str] = []
    absent: list[str] = []
    problems: list[DriverProblem] = []
    for plugin, answer in answers:
        if isinstance(answer, Unavailable):
            problems.append(DriverProblem(node=node, driver=plugin.name, why=str(answer)))
            continue
        for each in answer.found:
            if found.setdefault(each.device.id, each) is not each:
                reasons.append(
                    f"{_driver(plugin)} lists a device with the id {each.device.id} of another one."
                )
        if answer.reason:
            (reasons if answer.installed else absent).append(answer.reason)
    if not found and not problems:
        reasons += absent
    return NodeInventory(
        found=tuple(found.values()), reason=" ".join(reasons), problems=tuple(problems)
    )


class DeviceInventory:
    """The devices of this machine; safe to use from any thread.

    Attributes:
        node: the name under which they are listed.
    """

    def __init__(
        self,
        node: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        plugins: Callable[[], Sequence[InstalledPlugin]] = installed_plugins,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.node = node
        self._timeout = timeout
        self._plugins = plugins
        self._clock = clock
        self._lock = threading.Lock()
        self._stuck: dict[str, subprocess.Popen[str]] = {}
        self._absent: dict[str, tuple[float, DriverInventory]] = {}

    def read(self) -> NodeInventory:
        """Query all drivers at the same time.

        A driver that fails, hangs or cannot be loaded is a problem of the inventory, not an error.
        """
        with self._lock:
            queries = [(plugin, self._begin(plugin)) for plugin in self._plugins()]
            deadline = time.monotonic() + self._timeout
            return merge(
                self.node,
                [
                    (
                        plugin,
                        self._finish(plugin, begun, deadline)
                        if isinstance(begun, subprocess.Popen)
                        else begun,
                    )
                    for plugin, begun in queries
                ],
            )

    def _begin(
        self, plugin: InstalledPlugin
    ) -> subprocess.Popen[str] | DriverInventory | Unavailable:
        if plugin.problem:
            return Unavailable(plugin.problem)
        queried_at, absent = self._absent.get(plugin.name, (0.0, None))
        if absent is not None and self._clock() - queried_at < ABSENT_SECONDS:
            return absent
        stuck = self._stuck.get(plugin.name)
        if stuck is not None and stuck.poll() is None:
            return Unavailable(
                f"{_driver(plugin)} hangs: an earlier query (process {stuck.pid}) has not "
                "returned yet."
            )
        self._stuck.pop(plugin.name, None)
        try:
            return subprocess.Popen(
                [sys.executable, *command(plugin)[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as error:  # the machine is out of processes or descriptors
            return failure(plugin, error.strerror or str(error), None)

    def _finish(
        self, plugin: InstalledPlugin, child: subprocess.Popen[str], deadline: float
    ) -> DriverInventory | Unavailable:
        try:
            left = max(_COLLECTION_SECONDS, deadline - time.monotonic())
            output, errors = child.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            self._kill(plugin, child)
            return Unavailable(f"{_driver(plugin)} did not answer within {self._timeout:g} s.")
        if child.returncode != 0:
            return failure(plugin, errors, child.returncode)
        try:
            answer = parse(output, node=self.node, driver=plugin.name)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return Unavailable(f"{_driver(plugin)} returned an invalid report: {error}.")
        self._absent.pop(plugin.name, None)
        if not answer.installed:
            self._absent[plugin.name] = (self._clock(), answer)
        return answer

    def _kill(self, plugin: InstalledPlugin, child: subprocess.Popen[str]) -> None:
        """Kill a child that did not answer; a child that survives counts as stuck."""
        child.kill()
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        try:
            child.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._stuck[plugin.name] = child


def command(plugin: InstalledPlugin) -> tuple[str, ...]:
    """Return the command that prints the report of a plug-in."""
    return ("python", "-P", "-m", f"{__package__}.driver", plugin.target)


def failure(plugin: InstalledPlugin, output: str, status: int | None) -> Unavailable:
    """Return why a query of a driver failed, from the end of its output."""
    last = output.strip().splitlines()[-1:] or [f"exit status {status}"]
    return Unavailable(f"{_driver(plugin)} could not be queried: {last[0].rstrip('.')}.")


def parse(text: str, *, node: str, driver: str) -> DriverInventory:
    """Parse the output of the driver program into the devices of a node.

    An older image of the tools prints only some of the values.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the output is no such report.
    """
    answer = json.loads(text)
    for unit in answer["units"]:
        _check(unit)
    return DriverInventory(
        reason=answer["reason"],
        installed=answer.get("installed", True),
        found=tuple(
            DetectedDevice(
                device=Device(
                    id=unit["id"],
                    node=node,
                    index=unit["index"],
                    model=unit["model"],
                    memory_bytes=unit["memory_bytes"],
                    driver=driver,
                    files=tuple(DeviceFile(**file) for file in unit.get("files", ())),
                    health=Health(unit["health"]),
                    why=unit["why"],
                ),
                pids=tuple(unit["pids"]),
                utilization=unit["utilization"],
                mean_utilization=unit.get("mean_utilization")
                if unit.get("mean_utilization") is not None
                else unit["utilization"],
                used_bytes=unit["used_bytes"],
                signals=parse_signals(unit.get("signals")),
            )
            for unit in answer["units"]
        ),
    )


def _check(unit: Mapping[str, Any]) -> None:
    """Raise ValueError for a value that no device can have: it could not be stored."""
    for name, kind in _TYPES.items():
        value = unit[name]
        wrong = isinstance(value, bool) or not isinstance(value, kind)
        if wrong or (name in {"id", "model"} and not value):
            raise ValueError(f"a device has {value!r:.80} as its {name}")
    if not all(isinstance(pid, int) for pid in unit["pids"]):
        raise ValueError(f"a device has {unit['pids']!r:.80} as its pids")


def _driver(plugin: InstalledPlugin) -> str:
    return f"The {plugin.plugin.maker if plugin.plugin else plugin.name} driver"
