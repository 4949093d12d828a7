"""The NVIDIA devices of this machine, as the driver's management library (NVML) tells.

``read()`` asks in a child process (``python -m carrel.spawners.devices.driver``).
A thread that is stuck in one of the driver's ioctls can neither be killed nor be waited for
with a time-out, and it would hold the interpreter at exit; a child process can be given up.
Even SIGKILL may not reach it while it hangs in the kernel: then it is remembered, and the
driver is not asked again before that child has gone.
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
    """A device and the processes that compute on it, whoever started them."""

    device: Device
    pids: tuple[int, ...] = ()
    utilization: int | None = None
    """Percent of its time in which it worked lately; None where the driver cannot tell."""
    used_bytes: int = 0
    """Of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlInventory:
    """What NVML lists; ``reason`` is the sentence that says why there is less than expected."""

    found: tuple[DetectedDevice, ...] = ()
    reason: str = ""


_lock = threading.Lock()
_stuck: list[subprocess.Popen[str]] = []


def read(node: str, *, timeout: float = TIMEOUT_SECONDS) -> NvmlInventory:
    """The devices of this machine, listed under the name of ``node``.

    Raises:
        Unavailable: the driver does not answer in time, or fails. A machine without a driver
            is no error: its inventory is empty and says why.
    """
    if importlib.util.find_spec("pynvml") is None:
        return NvmlInventory(reason="The Python package nvidia-ml-py is not installed.")
    with _lock:
        _stuck[:] = [child for child in _stuck if child.poll() is None]
        if _stuck:
            raise Unavailable(
                "The NVIDIA driver hangs: an earlier question to it "
                f"(process {_stuck[0].pid}) has not come back yet."
            )
        return parse(_ask(timeout), node)


def _ask(timeout: float) -> str:
    child = subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.driver"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _give_up(child)
        raise Unavailable(f"The NVIDIA driver did not answer within {timeout:g} s.") from None
    if child.returncode != 0:
        last = errors.strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        raise Unavailable(f"The NVIDIA driver could not be asked: {last[0]}")
    return output


def _give_up(child: subprocess.Popen[str]) -> None:
    child.kill()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    try:
        child.wait(_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        _stuck.append(child)


def parse(text: str, node: str) -> NvmlInventory:
    """What the driver printed, as devices of a node."""
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
                used_bytes=unit["used_bytes"],
            )
            for unit in answer["units"]
        ),
    )
