"""Submit the jobs of due schedules through the same admission as a person's, and start rehearsals.

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

from ..errors import BackendFailed, CarrelError, Conflict, NotAMember, NotFound, Unavailable
from ..records.identity import Identity
from ..records.requests import RequestFilter
from ..records.schedules import Schedule, ScheduleState
from ..requests.jobs import JobService
from ..runtime.context import Context
from ..scheduling.model.states import LIVE
from ..schemas.schedules import SCHEDULE_LABEL
from .cron import CronTimes
from .rehearsal_schedules import RehearsalSchedules
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
        pauses: why the schedule is paused at once; empty if it goes on.
    """

    due: float
    request: str = ""
    error: str = ""
    missed: int = 0
    pauses: str = ""


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """Submits what is due; called by the scheduling loop."""

    context: Context
    rehearsals: RehearsalSchedules | None = None
    """None in a service without courses."""

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
            self._without_owner(schedule, now)
            return
        who = Identity(name=schedule.owner, admin=user.admin, groups=user.groups)
        times = CronTimes.parse(schedule.cron, schedule.zone)
        outcome = self._served(schedule, times, first)
        if outcome is None:
            due, missed = times.newest(first, now)
            outcome = self._submit(who, schedule, due, missed)
        following = times.after(outcome.due)
        record = partial(recorded, outcome=outcome, served=first, following=following, now=now)
        self.context.store.update_schedule(schedule.id, record)
        self.context.notifier.notify()

    def _without_owner(self, schedule: Schedule, now: float) -> None:
        """End the schedule of a removed user; that of a course waits for another teacher."""
        if not schedule.course:
            log.info("schedule %s ends: there is no user %s", schedule.id, schedule.owner)
            self.context.store.remove_schedule(schedule.id)
            return
        why = f"There is no user {schedule.owner} any more."

        def change(found: Schedule) -> Schedule:
            # A teacher may have taken it over in the meantime.
            return paused(found, why=why, now=now) if found.owner == schedule.owner else found

        self.context.store.update_schedule(schedule.id, change)

    def _submit(self, who: Identity, schedule: Schedule, due: float, missed: int) -> Outcome:
        try:
            started = self._start(who, schedule, due)
        except (Unavailable, BackendFailed):
            raise
        except CarrelError as error:
            pauses = error.message if isinstance(error, NotAMember) else ""
            return Outcome(due=due, error=str(error), missed=missed, pauses=pauses)
        except ValidationError:
            error_text = "Its job is not valid in this version of Carrel: create it again."
            return Outcome(due=due, error=error_text, missed=missed)
        return Outcome(due=due, request=started, missed=missed)

    def _start(self, who: Identity, schedule: Schedule, due: float) -> str:
        """Submit the job, or start the rehearsal, of one time; return its id."""
        key = key_of(schedule, due)
        if schedule.course:
            if self.rehearsals is None:
                raise Unavailable("This service has no courses.")
            return self.rehearsals.start(who, schedule, key)
        self._check_unfinished(schedule)
        body = job_of(self.context, schedule, key)
        return JobService(self.context).submit(who, body).id

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
    schedule: Schedule, *, outcome: Outcome, served: float, following: float | None, now: float
) -> Schedule:
    """Return the schedule with the outcome of a time.

    Args:
        served: the next time for which the job was submitted: if the owner has changed or paused
            the schedule since, its new next time stays.
        following: the next time after the outcome.
        now: when the outcome is recorded.
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
    why = outcome.pauses
    if not why and refusals >= MOST_REFUSALS:
        why = f"Its job was refused {refusals} times in a row."
    return paused(new, why=why, now=now) if why else replace(new, next_at=following)


def paused(schedule: Schedule, *, why: str, now: float) -> Schedule:
    """Return the schedule as the service pauses it, of which its owner is told."""
    return replace(
        schedule, state=ScheduleState.PAUSED, next_at=None, paused_why=why, paused_at=now
    )
