"""Move the times of running work when the system clock is set."""

from __future__ import annotations

from dataclasses import replace

from ..records.leases import LeaseRecord
from ..records.requests import RequestRecord


def moved(request: RequestRecord, step: float) -> RequestRecord:
    """Return a request with all times of its open intervals moved by ``step``.

    Start, last heartbeat, charged interval and end keep their distance from now. Times that a user
    chose, such as a deadline, do not move.

    Args:
        step: seconds by which the clock was set forward; negative for backward.
    """
    notice, warning = request.notice, request.warning
    return replace(
        request,
        lease=None if request.lease is None else _moved_lease(request.lease, step),
        started_at=_moved_time(request.started_at, step),
        claimed_at=_moved_time(request.claimed_at, step),
        kept_at=_moved_time(request.kept_at, step),
        notice=notice
        and replace(notice, given_at=notice.given_at + step, stops_at=notice.stops_at + step),
        warning=warning
        and replace(
            warning,
            warned_at=warning.warned_at + step,
            stops_at=warning.stops_at + step,
            idle_since=warning.idle_since + step,
        ),
    )


def _moved_lease(lease: LeaseRecord, step: float) -> LeaseRecord:
    return replace(
        lease,
        granted_at=lease.granted_at + step,
        expires_at=lease.expires_at + step,
        seen_at=lease.seen_at + step,
        charged_until=lease.charged_until + step,
        launched_at=_moved_time(lease.launched_at, step),
        saved_at=_moved_time(lease.saved_at, step),
    )


def _moved_time(moment: float | None, step: float) -> float | None:
    return None if moment is None else moment + step
