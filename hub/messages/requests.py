"""The words for what Carrel knows: one renderer for pages, the command line and the API.

Sentences hold no times of day: ``dated_words`` has those that do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..records.notices import NoticeKind
from ..scheduling.model.plan import Reason, Wait
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.text import span
from .units import _MINUTE, count, devices, duration

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
        "held": "held for somebody who may claim it",
        "taken": "lent to somebody",
        "busy": "a process from outside Carrel works on it",
        "sick": "set aside because of errors",
        "quarantined": "taken out by an administrator",
        "draining": "being emptied: nothing new starts on it",
        "gone": "does not answer any more",
    }
)

_HELD: Mapping[Reason, tuple[str, str]] = MappingProxyType(
    {
        Reason.BORROWING: (
            "The group {} holds what it is guaranteed, and as much more as it may borrow.",
            "Its group holds what it is guaranteed, and as much more as it may borrow.",
        ),
        Reason.GUARANTEE: (
            "The free devices are kept for {}, which is guaranteed them.",
            "The free devices are kept for groups that are guaranteed them.",
        ),
        Reason.RESERVATION: (
            "The free devices are kept for a reservation of {}.",
            "The free devices are kept for a reservation.",
        ),
        Reason.BUDGET: (
            "The group {} has nothing left of its budget of this period.",
            "Its group has nothing left of its budget of this period.",
        ),
        Reason.USER_MAXIMUM: (
            "Its owner has no room for it within the maximum per member of {} now.",
            "Its owner has no room for it within the maximum per member now.",
        ),
        Reason.SESSIONS: (
            "Its owner has as many sessions with devices as one member of {} may.",
            "Its owner has as many sessions with devices as one member may.",
        ),
        Reason.RECLAIMING: (
            "Devices that {} borrowed were asked back for it; it starts when the notice ends.",
            "Devices of others were asked back for it; it starts when the notice ends.",
        ),
    }
)
"""Sentences that name a group, and the same where none is known."""
_YOU_HELD: Mapping[Reason, tuple[str, str]] = MappingProxyType(
    {
        Reason.USER_MAXIMUM: (
            "You have no room for it now within what one member of {} may hold.",
            "You have no room for it now within what one member may hold.",
        ),
        Reason.SESSIONS: (
            "You have as many sessions with devices as one member of {} may.",
            "You have as many sessions with devices as one member may.",
        ),
    }
)
"""What its owner reads instead."""
_WOULD_ASK_BACK = "Devices that others borrow would be asked back for it, with a notice to them."
"""Where nobody has sent it yet."""


def wait_sentence(wait: Wait, *, yours: bool = False) -> str:
    """Place and reason: ``Place 2. 1 request is ahead of it.`` ``yours``: to its owner."""
    reason = wait_reason(wait, yours=yours)
    return f"Place {wait.place}. {reason}" if _has_place(wait) else reason


def wait_reason(wait: Wait, *, yours: bool = False) -> str:
    """The same without the place, for whoever shows that elsewhere."""
    return _why(wait, yours=yours) if _has_place(wait) else "It starts now."


def _has_place(wait: Wait) -> bool:
    return wait.reason is not Reason.STARTING and wait.place > 0


def _why(wait: Wait, *, yours: bool) -> str:
    held = _YOU_HELD if yours and wait.reason in _YOU_HELD else _HELD
    if wait.reason in held:
        return held[wait.reason][0 if wait.detail else 1].format(wait.detail)
    match wait.reason:
        case Reason.NO_FREE_DEVICE:
            fitting = f"{wait.detail} devices" if wait.detail else "devices"
            return f"Too few {fitting} are free; it gets the next ones that come free."
        case Reason.BEHIND_OTHERS:
            ahead = count(wait.ahead, "request")
            verb = "is" if wait.ahead == 1 else "are"
            return f"{ahead} {verb} ahead of it."
        case Reason.GROUP_MAXIMUM:
            group = f"The group {wait.detail}" if wait.detail else "Its group"
            return f"{group} has no room for it within its maximum now."
        case Reason.ABOVE_MAXIMUM:
            group = f"{wait.detail} allows" if wait.detail else "its group allows"
            return f"It asks for more than {group} by now: it cannot start as it is."
        case Reason.POOL_TOO_SMALL:
            model = f"{wait.detail} " if wait.detail else ""
            return f"Too few {model}devices can be lent now; it starts when enough can."
        case Reason.ENGINE:
            return f"{wait.detail} It starts once that has changed."
        case Reason.DRAINING:
            return "Every node is being emptied; it starts when one takes work again."
        case _:
            return "It starts now."


def quote_sentence(wait: Wait, now: float) -> str:
    """What a request that nobody has sent yet would have to expect."""
    if wait.place < 1:
        return "It would start at once."
    why = _WOULD_ASK_BACK if wait.reason is Reason.RECLAIMING else _why(wait, yours=True)
    if wait.estimate is None:
        return f"It would wait at place {wait.place}. {why}"
    soon = _minutes(wait.estimate.at - now)
    return f"It would wait at place {wait.place}, for about {soon}. {why}"


def unclaimed_sentence(window: float, held: int) -> str:
    """Why a request ended whose device was held in vain."""
    what = "device" if held == 1 else "devices"
    return f"Nobody claimed it within {span(window)}; the {what} went to the next."


def idle_warning(seconds: float, held: int) -> str:
    """What a person reads whose session does nothing; the time of its end stands beside it."""
    return f"This session has done nothing for {_minutes(seconds)} and holds {devices(held)}."


def idle_cause(seconds: float, seen: Sequence[str]) -> str:
    """Why a session was stopped, with the evidence."""
    return " ".join([f"Stopped after {_minutes(seconds)} without work.", *seen])


def _minutes(seconds: float) -> str:
    """For what is estimated, or looked at twice a minute: the seconds say nothing."""
    return duration(seconds - seconds % _MINUTE if seconds > _MINUTE else seconds)


def drain_warning(why: str) -> str:
    """What whoever works there reads; the time stands beside it."""
    reason = f" ({why.rstrip('.')})" if why else ""
    return f"Its device or node is taken out of service{reason}. Save what you need before."


def notice_sentence(kind: NoticeKind, whose: str, group: str) -> str:
    """Why devices are asked back; the time stands beside it."""
    match kind:
        case NoticeKind.GUARANTEE:
            why = f"{whose} asks back devices that it is guaranteed and that {group} borrows."
        case NoticeKind.MOVED:
            return (
                f"{whose} is guaranteed several devices on one node, and this holds some of them: "
                "it is moved. It is queued again, before all others, and goes on elsewhere."
            )
        case NoticeKind.URGENT:
            why = f"Urgent work of {whose} comes first."
        case NoticeKind.BUDGET:
            return f"The budget of {whose} for this period is used up. Save what you need."
    return f"{why} It is then queued again, in its old place."


def budget_warning(group: str, period: str, part: float | None, *, early: float) -> str:
    """What people read of a budget that is nearly used up; empty while there is enough."""
    if part is None:
        return f"{group} has no budget between two terms: nothing of it starts."
    if part >= 1:
        return (
            f"{group} has used up its budget of this {period}: nothing new starts, and what runs "
            "is warned and then stopped."
        )
    return f"{group} has used {part:.0%} of its budget of this {period}." if part >= early else ""


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


def work(kind: str, notebook: str, command: Sequence[str], labels: Mapping[str, str]) -> str:
    """What is no session, as people call it: its notebook, its command, or what it grades."""
    if kind == Kind.GRADING and "assignment" in labels:
        return f"{'Check' if 'check' in labels else 'Grading'} of {labels['assignment']}"
    return notebook or shlex.join(command)
