"""The events that a user may be notified of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class NotificationEvent(StrEnum):
    """An event that a user chooses for a channel; none is chosen at first."""

    SESSION_READY = "session-ready"
    SESSION_STOP = "session-stop"
    JOB_STARTED = "job-started"
    JOB_ENDED = "job-ended"
    JOB_ATTENTION = "job-attention"
    FEEDBACK = "feedback"
    BUDGET_LOW = "budget-low"


TITLES: Mapping[NotificationEvent, str] = MappingProxyType(
    {
        NotificationEvent.SESSION_READY: "A queued session has its device",
        NotificationEvent.SESSION_STOP: "A session will be stopped",
        NotificationEvent.JOB_STARTED: "A job starts",
        NotificationEvent.JOB_ENDED: "A job ends",
        NotificationEvent.JOB_ATTENTION: "A job needs attention",
        NotificationEvent.FEEDBACK: "Feedback is released",
        NotificationEvent.BUDGET_LOW: "A budget is low",
    }
)
HINTS: Mapping[NotificationEvent, str] = MappingProxyType(
    {
        NotificationEvent.SESSION_READY: "Claim it within the claim window.",
        NotificationEvent.SESSION_STOP: "It is idle, or will be preempted.",
        NotificationEvent.JOB_STARTED: "For the first time; not after a preemption.",
        NotificationEvent.JOB_ENDED: "Also if it failed, unless you cancelled it.",
        NotificationEvent.JOB_ATTENTION: "It failed, was stopped by others, or will be preempted.",
        NotificationEvent.FEEDBACK: "On a submission of yours.",
        NotificationEvent.BUDGET_LOW: "Of a group in which your requests run; once a day.",
    }
)
