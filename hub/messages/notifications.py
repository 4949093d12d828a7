"""Sentences of notifications, and the text of a message.

They name what happened and where to read more. They do not quote outputs, errors or logs: a
message passes servers of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..records.requests import CauseCode, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..schemas.notifications.events import TITLES, NotificationEvent
from .requests import session_name, state_name
from .units import count, duration

MOST_LINES = 20
"""Notifications that a message lists; it counts the others."""
_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageText:
    """A message as plain text.

    Attributes:
        title: the subject, in one line.
    """

    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLine:
    """One notification in a message, with the address of the page about it."""

    event: NotificationEvent
    text: str
    url: str


def moment(at: float) -> str:
    """``14:20 UTC``: a message does not know the time zone of its reader."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"


def title_of(request: RequestRecord) -> str:
    """``train.ipynb (j-7k2m4qpz)`` or ``gpu (s-4c8x5w2n)``, in one line of limited length."""
    if request.kind is Kind.SESSION:
        name = session_name(request.server_name)
    else:
        job = request.job
        notebook, command = (job.notebook_name, job.command) if job else ("", ())
        name = notebook or _program(command)
    line = one_line(name, _LONGEST_TITLE)
    return f"{line} ({request.id})" if line else request.id


def _program(command: Sequence[str]) -> str:
    """Return the program of a command, and its script: other arguments may contain secrets."""
    scripts = [word for word in command[1:2] if word.endswith((".py", ".sh"))]
    left_out = [] if len(command) == 1 + len(scripts) else ["…"]
    return " ".join([*command[:1], *scripts, *left_out]) if command else ""


def one_line(text: str, longest: int) -> str:
    """Return the text in one line without control characters, shortened."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def claim_sentence(title: str, until: float) -> str:
    return (
        f"The session {title} has its device. Claim it until {moment(until)}; "
        "otherwise the device is released."
    )


def ready_sentence(title: str, waited: float) -> str:
    return f"The session {title} is running, after {duration(waited)} in the queue."


def idle_sentence(title: str, until: float) -> str:
    return f"The session {title} is idle and will be stopped at {moment(until)}."


def notice_stop_sentence(title: str, until: float, *, comes_back: bool) -> str:
    after = " It is queued again afterwards." if comes_back else ""
    return f"{title} will be stopped at {moment(until)}.{after}"


def started_sentence(title: str, waited: float) -> str:
    return f"The job {title} has started, after {duration(waited)} in the queue."


def ended_sentence(title: str, state: State, code: str, ran: float | None) -> str:
    if state is State.SUCCEEDED:
        took = "" if ran is None else f" after {duration(ran)}"
        return f"The job {title} completed{took}."
    why = "" if not code or code in _SAME_AS_STATE else f" ({state_name(code)})"
    return f"The job {title} {_ENDS[state]}{why}."


def sign_sentence(title: str, sign: str) -> str:
    return f"The job {title} may need you: {sign[:1].lower()}{sign[1:]}. The job goes on."


def lost_sentence(title: str) -> str:
    return f"The job {title} lost its machine or device and is queued again."


def feedback_sentence(course: str, assignment: str) -> str:
    return f"Feedback on {assignment} of {course} is released."


def paused_sentence(what: str, schedule: str) -> str:
    title = f"{one_line(what, _LONGEST_TITLE)} ({schedule})"
    return f"The schedule of {title} is paused: its job was refused."


def week_sentence(group: str, begins: float) -> str:
    day = datetime.fromtimestamp(begins, UTC)
    return (
        f"The report of what {group} held and did not use in the week from {day:%-d %B} can be "
        "read."
    )


def budget_sentence(group: str, part: float) -> str:
    return f"{group} has used {part:.0%} of its budget for this period."


_SAME_AS_STATE = frozenset({CauseCode.CANCELLED, CauseCode.TIME_LIMIT})
_ENDS: Mapping[State, str] = {
    State.FAILED: "failed",
    State.CANCELLED: "was cancelled",
    State.TIMED_OUT: "was stopped at its time limit",
}


def message(
    lines: Sequence[MessageLine], stops: Mapping[NotificationEvent, str], settings_url: str
) -> MessageText:
    """Return one message about all these notifications.

    Args:
        stops: for each event, the address that stops its messages to this channel.
        settings_url: address of the page of all channels.
    """
    shown, hidden = lines[:MOST_LINES], lines[MOST_LINES:]
    parts = [f"{line.text}\n{line.url}" for line in shown]
    if hidden:
        parts.append(f"… and {count(len(hidden), 'more notification')}: {_by_event(hidden)}.")
    events = sorted({line.event for line in lines}, key=list(NotificationEvent).index)
    footer = [f'Stop messages "{TITLES[event]}": {stops[event]}' for event in events]
    footer.append(f"All notifications: {settings_url}")
    return MessageText(
        title=_title(lines), body="\n\n".join([*parts, "-- \n" + "\n".join(footer)]) + "\n"
    )


def _title(lines: Sequence[MessageLine]) -> str:
    if len(lines) == 1:
        return f"Carrel: {lines[0].text.partition('. ')[0].rstrip('.')}"
    return f"Carrel: {count(len(lines), 'notification')} ({_by_event(lines)})"


def _by_event(lines: Sequence[MessageLine]) -> str:
    """``a job ends: 98, a job needs attention: 2``."""
    numbers = {event: sum(line.event is event for line in lines) for event in NotificationEvent}
    found = [(event, number) for event, number in numbers.items() if number]
    return ", ".join(
        f"{TITLES[event][:1].lower()}{TITLES[event][1:]}: {number}" for event, number in found
    )


def test_message(settings_url: str) -> MessageText:
    """Return the message that a user sends to try a channel."""
    body = (
        "This is the test message that you requested. Messages of this channel arrive.\n\n"
        f"-- \nAll notifications: {settings_url}\n"
    )
    return MessageText(title="Carrel: test message", body=body)


def confirmation_message(user: str, confirm_url: str) -> MessageText:
    """Return the message that asks the owner of an e-mail address for confirmation."""
    body = (
        f"The user {user} of Carrel wants notifications to be sent to this address.\n\n"
        f"Confirm that it is yours: {confirm_url}\n\n"
        "If it is not, do nothing: no further message is sent.\n"
    )
    return MessageText(title="Carrel: confirm your e-mail address", body=body)
