"""Decide whether failed attempts accuse a device or the code of a user.

Two users that fail in a row on one device accuse the device. One user that fails on three devices,
on which the work of others succeeds, accuses the user's code: that user's failures then say nothing
about a device. Only failures count that a device can cause: a program that died or disappeared, or
an error whose text names the device. Programs that die on several devices of a node at one time
accuse the node: it was restarted, or its memory or its container engine failed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from .findings import Consequence, DeviceFinding, FindingKind

DEVICES_OF_CODE: Final = 3
USERS_OF_DEVICE: Final = 2
WINDOW_SECONDS: Final = 86_400.0
"""Older attempts do not count."""
NODE_SECONDS: Final = 60.0
"""Programs that die on several devices within this time died of their node."""
_DEVICE_ERROR: Final = re.compile(
    r"CUDA error|CUDA driver|cudaError|CUDNN_STATUS|CUBLAS_STATUS|NCCL error|HIP error|hipError"
    r"|uncorrectable ECC|ECC error|unspecified launch failure"
    r"|device is lost|GPU is lost|fallen off the bus"
)
# Not "device-side assert" alone: PyTorch adds "enable device-side assertions" to all CUDA errors.
_PROGRAM_ERROR: Final = re.compile(
    r"out of memory|device-side assert triggered|illegal memory access|invalid device ordinal"
    r"|invalid argument|invalid configuration|no kernel image|driver version is insufficient"
    r"|no CUDA-capable|STATUS_(INVALID_VALUE|BAD_PARAM|NOT_SUPPORTED|ARCH_MISMATCH)",
    re.IGNORECASE,
)
"""Errors of a device that programs, or the libraries beside them, cause by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt on devices ended.

    Attributes:
        at: seconds since the epoch.
        request: id of its request.
        program: what identifies its code; empty if unknown.
        devices: ids.
        suspicious: whether it failed as a device can make it fail.
        died: whether its processes or its kernel ended without an error of the program.
        node: where it ran.
        succeeded: whether it did its work; an attempt may be neither.
    """

    at: float
    owner: str
    request: str
    devices: tuple[str, ...]
    program: str = ""
    suspicious: bool = False
    succeeded: bool = False
    died: bool = False
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccusedCode:
    """A user whose own code is the likely cause of failures on several devices.

    Attributes:
        request: the newest failed request.
        sentence: for its owner.
    """

    owner: str
    request: str
    sentence: str


def names_device(text: str) -> bool:
    """Whether the text of an error names the device, and not what the program did with it."""
    return bool(_DEVICE_ERROR.search(text)) and not _PROGRAM_ERROR.search(text)


def accused_code(ends: Iterable[AttemptEnd], now: float) -> tuple[AccusedCode, ...]:
    """Return the users whose last attempts failed on three devices that serve others well."""
    recent = _recent(ends, now)
    accused = []
    for owner in sorted({end.owner for end in recent}):
        own = [end for end in recent if end.owner == owner]
        failed = _last_failures(own)
        devices = {name for end in failed for name in end.devices}
        sound = {
            name
            for name in devices
            if any(end.succeeded and end.owner != owner and name in end.devices for end in recent)
        }
        if len(devices) >= DEVICES_OF_CODE and sound:
            accused.append(
                AccusedCode(
                    owner=owner,
                    request=failed[-1].request,
                    sentence=f"Your last {len(failed)} attempts failed in this way on "
                    f"{len(devices)} devices, and other users' work succeeds on "
                    f"{len(sound)} of them: the cause is probably in the code or its environment, "
                    "not in a device.",
                )
            )
    return tuple(accused)


def accused_devices(ends: Iterable[AttemptEnd], now: float) -> tuple[DeviceFinding, ...]:
    """Return the devices on which the last attempts of two users failed, one after the other.

    Not counted are the failures of users that fail on three devices, and those of code that fails
    on another device too, for any user.
    """
    recent = _recent(ends, now)
    by_owner: dict[str, set[str]] = {}
    by_program: dict[str, set[tuple[str, ...]]] = {}
    for end in recent:
        if end.suspicious:
            by_owner.setdefault(end.owner, set()).update(end.devices)
            by_program.setdefault(end.program, set()).add(end.devices)
    found = []
    for device in sorted({name for end in recent for name in end.devices}):
        failed = [
            end
            for end in _last_failures([end for end in recent if device in end.devices])
            if len(by_owner[end.owner]) < DEVICES_OF_CODE
            and (not end.program or len(by_program[end.program]) == 1)
        ]
        users = {end.owner for end in failed}
        # An attempt on several devices accuses none of them by itself.
        if len(users) >= USERS_OF_DEVICE and any(len(end.devices) == 1 for end in failed):
            found.append(
                DeviceFinding(
                    target=device,
                    kind=FindingKind.FAILED_JOBS,
                    consequence=Consequence.SUSPECT,
                    evidence=f"The last {len(failed)} attempts on it, of {len(users)} users, "
                    "failed as a broken device makes them fail.",
                )
            )
    return tuple(found)


def _recent(ends: Iterable[AttemptEnd], now: float) -> list[AttemptEnd]:
    """Return the attempts of the last day in order; those of the future are a clock error.

    Those that died of their node are not suspicious.
    """
    kept = [end for end in ends if end.devices and now - WINDOW_SECONDS <= end.at <= now]
    kept.sort(key=lambda end: (end.at, end.request))
    died: dict[str, list[AttemptEnd]] = {}
    for end in kept:
        if end.died:
            died.setdefault(end.node, []).append(end)
    return [
        replace(end, suspicious=False)
        if end.died and _died_with_others(end, died[end.node])
        else end
        for end in kept
    ]


def _died_with_others(end: AttemptEnd, died: Sequence[AttemptEnd]) -> bool:
    """Whether attempts on other devices died at nearly the same time."""
    first = bisect_left(died, end.at - NODE_SECONDS, key=lambda each: each.at)
    after = bisect_right(died, end.at + NODE_SECONDS, key=lambda each: each.at)
    return any(not set(died[n].devices) & set(end.devices) for n in range(first, after))


def _last_failures(ends: Sequence[AttemptEnd]) -> list[AttemptEnd]:
    """Return the suspicious failures after the last success."""
    last = max((number for number, end in enumerate(ends) if end.succeeded), default=-1)
    return [end for end in ends[last + 1 :] if end.suspicious]
