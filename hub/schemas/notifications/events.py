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
    JOB_SIGN = "job-sign"
    FEEDBACK = "feedback"
    BUDGET_LOW = "budget-low"
    UNUSED_DEVICES = "unused-devices"
    REPORT = "report"


TITLES: Mapping[NotificationEvent, str] = MappingProxyType(
    {
        NotificationEvent.SESSION_READY: "A queued session has its device",
        NotificationEvent.SESSION_STOP: "A session will be stopped",
        NotificationEvent.JOB_STARTED: "A job starts",
        NotificationEvent.JOB_ENDED: "A job ends",
        NotificationEvent.JOB_ATTENTION: "A job needs attention",
        NotificationEvent.JOB_SIGN: "A running job shows a sign of a fault",
        NotificationEvent.FEEDBACK: "Feedback is released",
        NotificationEvent.BUDGET_LOW: "A budget is low",
        NotificationEvent.UNUSED_DEVICES: "A week of a group that you teach has ended",
        NotificationEvent.REPORT: "The report of a month is written",
    }
)
HINTS: Mapping[NotificationEvent, str] = MappingProxyType(
    {
        NotificationEvent.SESSION_READY: "Claim it within the claim window.",
        NotificationEvent.SESSION_STOP: "It is idle, or will be preempted.",
        NotificationEvent.JOB_STARTED: "For the first time; not after a preemption.",
        NotificationEvent.JOB_ENDED: "Also if it failed, unless you cancelled it.",
        NotificationEvent.JOB_ATTENTION: "It failed, was stopped by others, or will be "
        "preempted; or a schedule was paused.",
        NotificationEvent.JOB_SIGN: "Such as a loss that is NaN, memory that grows, or idle "
        "devices. The job goes on.",
        NotificationEvent.FEEDBACK: "On a submission of yours.",
        NotificationEvent.BUDGET_LOW: "Of a group in which your requests run; once a day.",
        NotificationEvent.UNUSED_DEVICES: "With the report of what it held and did not use; on "
        "Monday.",
        NotificationEvent.REPORT: "For administrators, where the site writes it.",
    }
)
