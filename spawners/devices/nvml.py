"""Read the NVIDIA devices of this machine from the driver's management library (NVML).

``read()`` queries the driver in a child process (``python -m carrel.spawners.devices.driver``),
because a thread that hangs in a driver call cannot be killed and would block the interpreter's
exit. Even SIGKILL may not end a child that hangs in the kernel: the driver is then not queried
again until that child has ended.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Final

from ...hub.errors import Unavailable
from ...hub.scheduling.model.snapshot import Device, Health

TIMEOUT_SECONDS: Final = 10.0
_KILL_SECONDS: Final = 1.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlInventory:
    """The devices that NVML lists.

    Attributes:
        reason: a sentence that explains missing devices; empty if none is missing.
    """

    found: tuple[DetectedDevice, ...] = ()
    reason: str = ""


_lock = threading.Lock()
_stuck: list[subprocess.Popen[str]] = []


def read(node: str, *, timeout: float = TIMEOUT_SECONDS) -> NvmlInventory:
    """Return the devices of this machine, listed under the name of ``node``.

    A machine without a driver is not an error: its inventory is empty and has a reason.

    Raises:
        Unavailable: the driver fails or does not answer in time.
    """
    if importlib.util.find_spec("pynvml") is None:
        return NvmlInventory(reason="The Python package nvidia-ml-py is not installed.")
    with _lock:
        _stuck[:] = [child for child in _stuck if child.poll() is None]
        if _stuck:
            raise Unavailable(
                "The NVIDIA driver hangs: an earlier query "
                f"(process {_stuck[0].pid}) has not returned yet."
            )
        return parse(_query(timeout), node)


def _query(timeout: float) -> str:
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.driver"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(child)
        raise Unavailable(f"The NVIDIA driver did not answer within {timeout:g} s.") from None
    if child.returncode != 0:
        last = errors.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        raise Unavailable(f"The NVIDIA driver could not be queried: {last[0]}")
    return output


def _kill(child: subprocess.Popen[str]) -> None:
    """Kill a child that did not answer; a child that survives counts as stuck."""
    child.kill()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    try:
        child.wait(_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        _stuck.append(child)


def parse(text: str, node: str) -> NvmlInventory:
    """Parse the output of the driver program into the devices of a node."""
    answer = json.loads(text)
    return NvmlInventory(
        reason=answer["reason"],
        found=tuple(
            DetectedDevice(
                device=Device(
                    id=unit["id"],
                    node=node,
                    index=unit["index"],
                    model=unit["model"],
                    memory_bytes=unit["memory_bytes"],
                    health=Health(unit["health"]),
                    why=unit["why"],
                ),
                pids=tuple(unit["pids"]),
                utilization=unit["utilization"],
                # An older image of the tools reports only the highest sample.
                mean_utilization=unit.get("mean_utilization", unit["utilization"]),
                used_bytes=unit["used_bytes"],
            )
            for unit in answer["units"]
        ),
    )
