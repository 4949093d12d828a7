"""Submit the jobs of due schedules through the same admission as a person's.

A job is submitted before its schedule is updated. Its idempotency key is made of the schedule and
the time, so that a repeated submission returns the same job; and after a crash between the two
steps, the newest job of the schedule tells that its time was served. Of several times that passed
while the service was not running, only the newest gets a job, and the others are counted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import ValidationError

from ..errors import BackendFailed, CarrelError, Conflict, NotFound, Unavailable
from ..records.identity import Identity
from ..records.requests import RequestFilter
from ..records.schedules import Schedule, ScheduleState
from ..requests.jobs import JobService
from ..runtime.context import Context
from ..scheduling.model.states import LIVE
from ..schemas.schedules import SCHEDULE_LABEL
from .cron import CronTimes
from .schedules import job_of

log = logging.getLogger(__name__)

MOST_REFUSALS: Final = 5
"""Refused jobs in a row after which a schedule is paused."""
MOST_UNFINISHED: Final = 10
"""Jobs of one schedule that may be queued or running at the same time."""
_NEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one time of a schedule.

    Attributes:
        due: the time.
        request: id of the job; empty if it was refused.
        error: why it was refused; empty if it was submitted.
        missed: times before it that passed without a job.
    """

    due: float
    request: str = ""
    error: str = ""
    missed: int = 0


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """Submits what is due; called by the scheduling loop."""

    context: Context

    def reconcile(self) -> None:
        """Submit the jobs of all due schedules; those that cannot be decided now stay due."""
        now = self.context.clock()
        for schedule in self.context.store.due_schedules(now):
            try:
                self._serve(schedule, now)
            except (Unavailable, BackendFailed) as error:
                log.warning("schedule %s stays due: %s", schedule.id, error)
            except NotFound:
                log.info("schedule %s was removed meanwhile", schedule.id)
            except Exception:
                # One schedule must not keep the others from their times.
                log.exception("schedule %s stays due", schedule.id)

    def _serve(self, schedule: Schedule, now: float) -> None:
        first = schedule.next_at
        assert first is not None
        try:
            user = self.context.hub.user(schedule.owner)
        except NotFound:
            log.info("schedule %s ends: there is no user %s", schedule.id, schedule.owner)
            self.context.store.remove_schedule(schedule.id)
            return
        who = Identity(name=schedule.owner, admin=user.admin, groups=user.groups)
        times = CronTimes.parse(schedule.cron, schedule.zone)
        outcome = self._served(schedule, times, first)
        if outcome is None:
            due, missed = times.newest(first, now)
            outcome = self._submit(who, schedule, due, missed)
        following = times.after(outcome.due)
        record = partial(recorded, outcome=outcome, served=first, following=following)
        self.context.store.update_schedule(schedule.id, record)
        self.context.notifier.notify()

    def _submit(self, who: Identity, schedule: Schedule, due: float, missed: int) -> Outcome:
        try:
            self._check_unfinished(schedule)
            body = job_of(self.context, schedule, key_of(schedule, due))
            request = JobService(self.context).submit(who, body)
        except (Unavailable, BackendFailed):
            raise
        except CarrelError as error:
            return Outcome(due=due, error=str(error), missed=missed)
        except ValidationError:
            error_text = "Its job is not valid in this version of Carrel: create it again."
            return Outcome(due=due, error=error_text, missed=missed)
        return Outcome(due=due, request=request.id, missed=missed)

    def _check_unfinished(self, schedule: Schedule) -> None:
        jobs = RequestFilter(
            owner=schedule.owner,
            labels={SCHEDULE_LABEL: schedule.id},
            states=LIVE,
            limit=MOST_UNFINISHED,
        )
        if len(self.context.store.requests(jobs)) >= MOST_UNFINISHED:
            raise Conflict(
                f"{MOST_UNFINISHED} jobs of this schedule have not ended yet.",
                accepted="Run it less often, or shorten its job.",
            )

    def _served(self, schedule: Schedule, times: CronTimes, first: float) -> Outcome | None:
        """Return the outcome of a time from ``first`` on whose job was submitted before a crash."""
        labels = {SCHEDULE_LABEL: schedule.id}
        jobs = RequestFilter(owner=schedule.owner, labels=labels, limit=_NEWEST)
        keys = {
            request.idempotency_key: request.id for request in self.context.store.requests(jobs)
        }
        begin = f"{schedule.id}@"
        served = [
            (int(key.removeprefix(begin)), request_id)
            for key, request_id in keys.items()
            if key.startswith(begin) and key.removeprefix(begin).isdecimal()
        ]
        due, request_id = max(served, default=(0, ""))
        if due < first:
            return None
        _, missed = times.newest(first, due)
        return Outcome(due=float(due), request=request_id, missed=missed)


def key_of(schedule: Schedule, due: float) -> str:
    """Return the idempotency key of the job for one time of a schedule."""
    return f"{schedule.id}@{due:.0f}"


def recorded(
    schedule: Schedule, *, outcome: Outcome, served: float, following: float | None
) -> Schedule:
    """Return the schedule with the outcome of a time.

    Args:
        served: the next time for which the job was submitted: if the owner has changed or paused
            the schedule since, its new next time stays.
        following: the next time after the outcome.
    """
    refusals = schedule.refusals + 1 if outcome.error else 0
    new = replace(
        schedule,
        last_due=outcome.due,
        last_request=outcome.request or schedule.last_request,
        last_error=outcome.error,
        missed=outcome.missed,
        refusals=refusals,
    )
    if schedule.next_at != served:
        return new
    if refusals >= MOST_REFUSALS:
        return replace(
            new,
            state=ScheduleState.PAUSED,
            next_at=None,
            paused_why=f"Its job was refused {refusals} times in a row.",
        )
    return replace(new, next_at=following)
