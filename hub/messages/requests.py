"""Sentences about requests, for pages, the command line, widgets and the API.

They contain no times of day; ``timed_text`` has the sentences that do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..records.notices import NoticeKind
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.text import span
from ..schemas import GangMemberOut, ResultOut, RoleOut
from .units import MINUTE, complete_sentence, count, devices, duration

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
        "quarantined": "out of service until it is released",
        "draining": "no new work starts on it",
        "gone": "not responding",
    }
)


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


def time_limit_warning(seconds: float) -> str:
    """Warn the user of a session whose time limit is nearly over; views show the time beside it."""
    return f"Its time limit of {duration(seconds)} is over then. You can extend it on the desk."


def held_notice(server_name: str, held: int) -> str:
    """Tell the owner of held devices in another session; views show the time beside it."""
    name = server_name or "default"
    if held == 1:
        ready, them = "Your device is ready", "it"
    else:
        ready, them = "Your devices are ready", "them"
    return f"{ready} and held for the session {name}. Claim {them} before the time runs out."


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


def halt_warning(message: str) -> str:
    """Tell the owner of a job that is halted; views show the end of the grace period beside it."""
    return f"{complete_sentence(message)} It ends sooner, once its work is saved."


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


def dependency_sentence(job: str, state: str, *, ended: bool, condition: str) -> str:
    """Say that a request waits for a job, and what helps if that did not succeed."""
    now = state_name(state)
    if ended:
        return (
            f"It waits for {job} to succeed, and that is {now}: resume that job "
            f"(carrel resume {job}), or cancel this one."
        )
    wanted = "to succeed" if condition == "ok" else "to end"
    return f"It waits for {job} {wanted}, and that is {now}."


def result_text(result: ResultOut) -> str:
    """``lr from j-7k2m4qpz (best.lr)``, or that it will be."""
    if result.source:
        return f"{result.name} from {result.source} ({result.value})"
    return f"{result.name} will be {result.value} of {result.job}"


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


_COURSE_WORK = {
    "check": "Check",
    "rehearsal": "Rehearsal",
    "official": "Official check",
    "leaderboard": "Leaderboard",
}
"""The work of courses that is no grading, by a label of its requests."""


def work_title(kind: str, notebook: str, command: Sequence[str], labels: Mapping[str, str]) -> str:
    """Return the title of a job or grading request: its notebook, command or assignment."""
    if kind == Kind.GRADING and "assignment" in labels:
        work = next((text for name, text in _COURSE_WORK.items() if name in labels), "Grading")
        return f"{work} of {labels['assignment']}"
    return notebook or shlex.join(command)


def member_text(member: GangMemberOut) -> str:
    """``worker 1, running on node2 with 4 devices``."""
    where = f" on {member.node}" if member.node else ""
    held = f" with {devices(len(member.devices))}" if member.devices else ""
    return f"{member.role} {member.number}, {member.state}{where}{held}"


def role_text(role: RoleOut) -> str:
    """``2 to 4 members, 4 devices each: torchrun train.py``."""
    least = f"{role.minimum} to " if role.minimum != role.maximum else ""
    each = f", {devices(role.devices)} each" if role.devices else ""
    image = f", image {role.image}" if role.image else ""
    members = f"{least}{count(role.maximum, 'member')}"
    return f"{members}{each}{image}: {shlex.join(role.command)}"
