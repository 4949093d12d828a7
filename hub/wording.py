"""The words for what Carrel knows: one renderer for pages, the command line and the API.

Sentences hold no times of day: those are shown beside them, in the reader's own zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .scheduling.model import Reason, Wait

_STATES: Mapping[str, str] = MappingProxyType(
    {
        "queued": "waiting in the queue",
        "granted": "has its devices, about to start",
        "starting": "its process is being started",
        "running": "running",
        "stopping": "its processes are being ended",
        "preempted": "preempted, goes back to the queue",
        "halted": "halted, goes back to the queue",
        "lost": "lost, goes back to the queue",
        "succeeded": "ended as it should",
        "failed": "failed",
        "cancelled": "cancelled",
        "timed_out": "ended by its time limit",
    }
)

_TILES: Mapping[str, str] = MappingProxyType(
    {
        "free": "can be lent now",
        "yours": "works for you",
        "taken": "lent to somebody",
        "busy": "a process from outside Carrel works on it",
        "sick": "set aside because of errors",
        "gone": "does not answer any more",
    }
)

_UNITS_SHOWN = 2
_GIBIBYTE = 2**30
_STEP = 1024
_ONE_DECIMAL_BELOW = 10
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def wait_sentence(wait: Wait) -> str:
    """Place and reason: ``Place 2. 1 request is ahead of it.``"""
    if wait.reason is Reason.STARTING or wait.place < 1:
        return "It starts now."
    return f"Place {wait.place}. {_why(wait)}"


def _why(wait: Wait) -> str:
    match wait.reason:
        case Reason.NO_FREE_DEVICE:
            fitting = f"{wait.detail} devices" if wait.detail else "devices"
            return f"Too few {fitting} are free; the next ones that come free are its."
        case Reason.BEHIND_OTHERS:
            ahead = count(wait.ahead, "request")
            verb = "is" if wait.ahead == 1 else "are"
            return f"{ahead} {verb} ahead of it."
        case Reason.GROUP_MAXIMUM:
            group = f"The group {wait.detail}" if wait.detail else "Its group"
            return f"{group} has no room for it within its maximum now."
        case Reason.USER_MAXIMUM:
            group = f" of {wait.detail}" if wait.detail else ""
            return f"Its owner has no room for it within the maximum per member{group} now."
        case Reason.POOL_TOO_SMALL:
            model = f"{wait.detail} " if wait.detail else ""
            return f"Too few {model}devices are in working order now; it starts when enough are."
        case _:
            return "It starts now."


def count(number: int, noun: str) -> str:
    """``1 request``, ``2 requests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def devices(number: int) -> str:
    """``no device``, ``1 device``, ``3 devices``."""
    return "no device" if number == 0 else count(number, "device")


def duration(seconds: float) -> str:
    """The two largest units: ``1 h 30 min``, ``45 s``, ``2 d``; never negative."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, unit in _UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
        if len(parts) == _UNITS_SHOWN:
            break
    return " ".join(filter(None, parts)) or "0 s"


def device_seconds(amount: float) -> str:
    """``5,400 device-seconds``; fractions of a second are left to the ledger."""
    whole = round(amount)
    return f"{whole:,} device-second{'' if whole == 1 else 's'}"


def memory(size_bytes: int) -> str:
    """``80 GiB``, ``512 MiB``; empty where it is not known."""
    if size_bytes <= 0:
        return ""
    if size_bytes < _GIBIBYTE:
        return f"{size_bytes / 2**20:.0f} MiB"
    return f"{size_bytes / _GIBIBYTE:.0f} GiB"


def size(size_bytes: float) -> str:
    """Of a file or an upload: ``0 B``, ``3.4 MiB``, ``120 KiB``."""
    unit, *larger = ("B", "KiB", "MiB", "GiB")
    while size_bytes >= _STEP and larger:
        size_bytes /= _STEP
        unit = larger.pop(0)
    exact = unit == "B" or size_bytes >= _ONE_DECIMAL_BELOW
    return f"{size_bytes:.0f} {unit}" if exact else f"{size_bytes:.1f} {unit}"


def state(name: str) -> str:
    """The state's own name as it is written in texts: ``timed out``."""
    return name.replace("_", " ")


def state_meaning(name: str) -> str:
    """What a state means, for people who see its name the first time."""
    return _STATES.get(name, state(name))


def tile_meaning(name: str) -> str:
    """What the state of a device in the pool means."""
    return _TILES.get(name, name)


def server(name: str) -> str:
    """The name of a session as people read it."""
    return name or "default session"
