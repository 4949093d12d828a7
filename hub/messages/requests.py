"""Sentences about requests, for pages, the command line, widgets and the API.

They contain no times of day; ``timed_text`` has the sentences that do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..records.notices import NoticeKind
from ..scheduling.model.plan import Reason, Wait
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.text import span
from .units import MINUTE, coming, count, devices, duration

_STATES: Mapping[str, str] = MappingProxyType(
    {
        "queued": "waiting in the queue",
        "granted": "devices allocated, about to start",
        "starting": "its process is starting",
        "running": "running",
        "stopping": "its processes are being stopped",
        "preempted": "preempted, returns to the queue",
        "halted": "halted, returns to the queue",
        "lost": "lost, returns to the queue",
        "succeeded": "completed",
        "failed": "failed",
        "cancelled": "cancelled",
        "timed_out": "stopped at its time limit",
    }
)

_DEVICE_STATES: Mapping[str, str] = MappingProxyType(
    {
        "free": "available",
        "yours": "in use by you",
        "held": "held for a session until its owner claims it",
        "taken": "in use by another user",
        "busy": "in use by a process outside Carrel",
        "sick": "out of service because of errors",
        "quarantined": "quarantined by an administrator",
        "draining": "draining: no new work starts on it",
        "gone": "not responding",
    }
)

_REASONS: Mapping[Reason, tuple[str, str]] = MappingProxyType(
    {
        Reason.BORROWING: (
            "It would exceed what {} may borrow beyond its guaranteed quota.",
            "It would exceed what its group may borrow beyond its guaranteed quota.",
        ),
        Reason.GUARANTEE: (
            "The free devices are kept for the guaranteed quota of {}.",
            "The free devices are kept for the guaranteed quotas of other groups.",
        ),
        Reason.RESERVATION: (
            "The free devices are kept for a reservation of {}.",
            "The free devices are kept for a reservation.",
        ),
        Reason.BUDGET: (
            "{} has used up its budget for this period.",
            "Its group has used up its budget for this period.",
        ),
        Reason.GROUP_MAXIMUM: (
            "It would exceed the max quota of {}.",
            "It would exceed the max quota of its group.",
        ),
        Reason.USER_MAXIMUM: (
            "Its owner would exceed the maximum number of devices per member of {}.",
            "Its owner would exceed the maximum number of devices per member.",
        ),
        Reason.SESSIONS: (
            "Its owner already has the maximum number of sessions with devices per member of {}.",
            "Its owner already has the maximum number of sessions with devices per member.",
        ),
        Reason.RECLAIMING: (
            "Devices that {} borrowed are being preempted for it; it starts when the grace period "
            "ends.",
            "Devices in use are being preempted for it; it starts when the grace period ends.",
        ),
    }
)
"""Each sentence with the name of a group, and without it where no group is known."""
_OWN_REASONS: Mapping[Reason, tuple[str, str]] = MappingProxyType(
    {
        Reason.USER_MAXIMUM: (
            "You would exceed your maximum number of devices in {}.",
            "You would exceed your maximum number of devices.",
        ),
        Reason.SESSIONS: (
            "You already have your maximum number of sessions with devices in {}.",
            "You already have your maximum number of sessions with devices.",
        ),
    }
)
"""The sentences that the owner reads instead."""
_WOULD_PREEMPT = "Borrowed devices would be preempted for it, after a notice to their users."


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnUsage:
    """The devices that the reader uses in a group, and the maximum per member of the group."""

    group: str
    used: float
    maximum: float


def wait_sentence(wait: Wait, *, yours: bool = False) -> str:
    """Return position and reason: ``Queued at position 2. 1 request is ahead of it.``

    ``yours``: the reader is the owner.
    """
    reason = wait_reason(wait, yours=yours)
    return f"{position_sentence(wait.place)} {reason}" if _has_position(wait) else reason


def position_sentence(position: int) -> str:
    """``Queued at position 2.``"""
    return f"Queued at position {position}."


def wait_reason(wait: Wait, *, yours: bool = False) -> str:
    """Return the reason without the position, for views that show the position elsewhere."""
    return _reason(wait, yours=yours) if _has_position(wait) else "It starts now."


def _has_position(wait: Wait) -> bool:
    return wait.reason is not Reason.STARTING and wait.place > 0


def _reason(wait: Wait, *, yours: bool) -> str:
    sentences = _OWN_REASONS if yours and wait.reason in _OWN_REASONS else _REASONS
    if wait.reason in sentences:
        return sentences[wait.reason][0 if wait.detail else 1].format(wait.detail)
    match wait.reason:
        case Reason.NO_FREE_DEVICE:
            fitting = f"{wait.detail} devices" if wait.detail else "devices"
            return f"Not enough {fitting} are free; it gets the next ones that are released."
        case Reason.BEHIND_OTHERS:
            ahead = count(wait.ahead, "request")
            verb = "is" if wait.ahead == 1 else "are"
            return f"{ahead} {verb} ahead of it."
        case Reason.ABOVE_MAXIMUM:
            group = wait.detail or "its group"
            return f"It requests more than {group} now allows, so it cannot start. Change it."
        case Reason.POOL_TOO_SMALL:
            model = f"{wait.detail} " if wait.detail else ""
            return f"Not enough {model}devices are in service; it starts when enough are."
        case Reason.ENGINE:
            return f"{wait.detail} It starts when that is resolved."
        case Reason.DRAINING:
            return "All nodes are draining; it starts when one accepts work again."
        case _:
            return "It starts now."


def quote_sentence(wait: Wait, now: float, usage: OwnUsage | None = None) -> str:
    """Return what to expect of a request before it is submitted.

    ``usage``: of the owner, where the maximum per member is what holds the request.
    """
    if wait.place < 1:
        return "Starts immediately."
    if wait.reason is Reason.RECLAIMING:
        why = _WOULD_PREEMPT
    elif wait.reason is Reason.USER_MAXIMUM and usage is not None:
        why = usage_sentence(usage)
    else:
        why = _reason(wait, yours=True)
    if wait.estimate is None:
        return f"{position_sentence(wait.place)} {why}"
    return f"Queued at position {wait.place}, starts {coming(wait.estimate.at - now)}. {why}"


def usage_sentence(usage: OwnUsage) -> str:
    """``You already use your maximum of 2 devices in cs101.``"""
    noun = "device" if usage.maximum == 1 else "devices"
    maximum = f"your maximum of {usage.maximum:g} {noun} in {usage.group}"
    if usage.used >= usage.maximum:
        return f"You already use {maximum}."
    return f"You use {usage.used:g} of {maximum}."


def unclaimed_sentence(window: float, held: int) -> str:
    """Return why a session ended whose devices were held but not claimed."""
    was = "its device was" if held == 1 else "its devices were"
    return f"The session was not claimed within {span(window)}; {was} released."


def idle_warning(seconds: float, held: int) -> str:
    """Warn the owner of an idle session; views show the time of its end beside it."""
    return f"This session has been idle for {_minutes(seconds)} and holds {devices(held)}."


def idle_cause(seconds: float, seen: Sequence[str]) -> str:
    """Return why an idle session was stopped, with the evidence."""
    return " ".join([f"Stopped after being idle for {_minutes(seconds)}.", *seen])


def _minutes(seconds: float) -> str:
    """Round down to whole minutes: estimates and idle times are no more exact than that."""
    return duration(seconds - seconds % MINUTE if seconds > MINUTE else seconds)


def drain_warning(why: str) -> str:
    """Warn the user of a device or node that drains; views show the time beside it."""
    reason = f" ({why.rstrip('.')})" if why else ""
    return f"Its device or node is being taken out of service{reason}. Save your work before then."


def notice_sentence(kind: NoticeKind, whose: str, group: str) -> str:
    """Return the text of a preemption notice; views show the time beside it."""
    match kind:
        case NoticeKind.GUARANTEE:
            why = f"{whose} reclaims devices of its guaranteed quota that {group} borrows."
        case NoticeKind.MOVED:
            return (
                f"{whose} needs several devices of one node for its guaranteed quota, and this "
                "request uses some of them. It is relocated: it is queued again ahead of all "
                "others and continues on other devices."
            )
        case NoticeKind.URGENT:
            why = f"An urgent request of {whose} needs the devices."
        case NoticeKind.BUDGET:
            return f"{whose} has used up its budget for this period. Save your work."
    return f"{why} This request is then queued again at its old position."


def budget_warning(group: str, period: str, part: float | None, *, early: float) -> str:
    """Warn of a budget that is nearly used up; empty while enough is left."""
    if part is None:
        return f"{group} has no budget between two terms, so its requests do not start."
    if part >= 1:
        return (
            f"{group} has used up its budget for this {period}: no request starts, and running "
            "requests are stopped after a notice."
        )
    return f"{group} has used {part:.0%} of its budget for this {period}." if part >= early else ""


def state_name(state: str) -> str:
    """Return the name of a state as texts write it: ``timed out``."""
    return state.replace("_", " ")


def state_meaning(state: str) -> str:
    """Explain the state of a request."""
    return _STATES.get(state, state_name(state))


def device_state_meaning(state: str) -> str:
    """Explain the state of a device in the pool."""
    return _DEVICE_STATES.get(state, state)


def session_name(server_name: str) -> str:
    """Return the name of a session as people read it."""
    return server_name or "default session"


def work_title(kind: str, notebook: str, command: Sequence[str], labels: Mapping[str, str]) -> str:
    """Return the title of a job or grading request: its notebook, command or assignment."""
    if kind == Kind.GRADING and "assignment" in labels:
        return f"{'Check' if 'check' in labels else 'Grading'} of {labels['assignment']}"
    return notebook or shlex.join(command)
