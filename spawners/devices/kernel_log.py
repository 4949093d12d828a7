"""Read the errors of NVIDIA GPUs (Xid) from the log of the kernel.

NVML delivers Xid errors only to programs that have subscribed before, which a query in a process of
its own has not. The driver also writes each to the kernel's log, which root can read, and others
where ``kernel.dmesg_restrict`` is 0; without permission there are none.

The clock of the log is none of those that programs can read, and drifts from them by seconds a day:
the number of a record says what is new, and its time only what is new to a service that has just
started. A record of ``/dev/kmsg`` begins ``PRIORITY,NUMBER,MICROSECONDS,FLAGS;``, with the time
since boot:
https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Final

RECENT_SECONDS: Final = 60.0
_PATH: Final = os.environ.get("CARREL_KERNEL_LOG", "/dev/kmsg")
_RECORD_BYTES: Final = 8192
_MOST_RECORDS: Final = 100_000
_XID: Final = re.compile(
    r"^\d+,(\d+),(\d+),[^;]*;NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class LoggedXid:
    """An error in the log.

    Attributes:
        number: of its record; it grows until the machine is started again.
        recent: whether it was logged in the last minute, as far as the clock of the log tells.
    """

    number: int
    code: int
    recent: bool


def logged_xids(path: str = _PATH, now: float | None = None) -> dict[str, tuple[LoggedXid, ...]]:
    """Return the errors that the log still has, by ``pci_address``; empty without permission.

    Args:
        now: seconds since boot.
    """
    at = time.clock_gettime(time.CLOCK_MONOTONIC) if now is None else now
    try:
        content = _read(path)
    except OSError:
        return {}
    found: dict[str, list[LoggedXid]] = {}
    for number, microseconds, address, code in _XID.findall(content):
        age = at - int(microseconds) / 1e6
        logged = LoggedXid(int(number), int(code), recent=abs(age) <= RECENT_SECONDS)
        found.setdefault(pci_address(address), []).append(logged)
    return {address: tuple(errors) for address, errors in found.items()}


def pci_address(text: str | bytes) -> str:
    """Return ``DOMAIN:BUS:DEVICE`` in one form: NVML and the log write it with other lengths."""
    written = text.decode(errors="replace") if isinstance(text, bytes) else text
    parts = written.lower().split(".")[0].split(":")
    return ":".join(part.lstrip("0") or "0" for part in parts)


def _read(path: str) -> str:
    """Return all records; reading from ``/dev/kmsg`` returns one record a call."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    records: list[bytes] = []
    try:
        for _ in range(_MOST_RECORDS):
            try:
                record = os.read(descriptor, _RECORD_BYTES)
            except BlockingIOError:  # the end
                break
            except BrokenPipeError:  # a record was overwritten meanwhile
                continue
            if not record:
                break
            records.append(record)
    finally:
        os.close(descriptor)
    return b"".join(records).decode(errors="replace")
