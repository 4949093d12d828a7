"""Create, list, change, run and remove the schedules of a user."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, replace
from typing import Final

from ..admission.request_factory import RequestFactory, check_text, new_id
from ..errors import Conflict, InvalidInput, NotFound, TooLarge
from ..records.identity import Identity
from ..records.schedules import Schedule, ScheduleState
from ..requests.jobs import JobService
from ..runtime.context import Context
from ..schemas import JobIn, RequestOut
from ..schemas.schedules import (
    SCHEDULE_LABEL,
    ScheduleChangeIn,
    ScheduledJobOut,
    ScheduleIn,
    ScheduleOut,
    ScheduleRunIn,
    SchedulesOut,
)
from .cron import CronTimes

MOST_SCHEDULES: Final = 50
"""Max number of schedules of a user."""
SHOWN_TIMES: Final = 5
"""Next times that are shown of a schedule."""
MAX_JOB_BYTES: Final = 8 * 1024 * 1024
_SHOWN = frozenset(ScheduleOut.model_fields)
_SHOWN_OF_JOB = set(ScheduledJobOut.model_fields) - {"notebook", "uploaded"}
_WHAT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class ScheduleService:
    """The schedules of a caller; other users neither see nor change them.

    Those of a course's rehearsals belong to a teacher, and all its teachers change them.
    """

    context: Context

    def create(self, who: Identity, body: ScheduleIn) -> ScheduleOut:
        """Store a schedule, after all checks that the submission of its job would make now.

        Raises:
            Refused: the job is not admitted, the times are invalid, or there are too many.
        """
        c, now = self.context, self.context.clock()
        times = CronTimes.parse(body.cron, body.zone)
        if body.job.deadline is not None:
            raise InvalidInput(
                "The jobs of a schedule have no common deadline.",
                accepted="Omit 'deadline'.",
                field="deadline",
            )
        schedule_id = new_id("c")
        check_text(body.idempotency_key, "idempotency_key")
        accepted = RequestFactory.of(c).job(who, labelled(body.job, schedule_id, key=""))
        request = accepted.request
        new = Schedule(
            id=schedule_id,
            owner=who.name,
            group=request.group,
            what=_what(body.job),
            devices=request.devices,
            cron=times.expression,
            zone=body.zone,
            created_at=now,
            next_at=times.after(now),
            idempotency_key=body.idempotency_key or schedule_id,
        )
        job = body.job.model_copy(update={"group": request.group})
        return schedule_out(c.store.add_schedule(new, _stored(job), most=MOST_SCHEDULES))

    def all(self, who: Identity) -> SchedulesOut:
        """List the caller's schedules, oldest first."""
        found = self.context.store.schedules(who.name)
        return SchedulesOut(schedules=[schedule_out(each) for each in found])

    def one(self, who: Identity, schedule_id: str) -> ScheduleOut:
        """Raises NotFound."""
        return schedule_out(self._own(who, schedule_id))

    def job(self, who: Identity, schedule_id: str) -> ScheduledJobOut:
        """Return the job that a schedule submits. Raises NotFound, Conflict."""
        schedule = self._own(who, schedule_id)
        _check_of_job(schedule)
        job = _job_of(self.context, schedule)
        given = job.model_dump(include=_SHOWN_OF_JOB)
        name = job.notebook.name if job.notebook else ""
        return ScheduledJobOut.model_validate(
            given | {"notebook": name, "uploaded": bool(job.archive)}
        )

    def change(self, who: Identity, schedule_id: str, body: ScheduleChangeIn) -> ScheduleOut:
        """Change the times, pause or resume; times that passed while paused are not made up for.

        A teacher who resumes the rehearsals of a colleague owns the schedule from then on.

        Raises:
            NotFound: the caller has no such schedule.
            InvalidInput: the times are invalid.
        """
        now = self.context.clock()

        def changed(schedule: Schedule) -> Schedule:
            times = CronTimes.parse(body.cron or schedule.cron, body.zone or schedule.zone)
            state = ScheduleState(body.state) if body.state else schedule.state
            new = replace(
                schedule, cron=times.expression, zone=body.zone or schedule.zone, state=state
            )
            if state is ScheduleState.PAUSED:
                return replace(new, next_at=None)
            if new == schedule:
                return schedule  # An active one keeps a time that is due at this moment.
            new = replace(new, next_at=times.after(now), paused_why="", paused_at=None, refusals=0)
            if body.state and new.owner != who.name:
                # The key of the former owner may be in use by the new one.
                return replace(new, owner=who.name, idempotency_key=schedule.id)
            return new

        self._own(who, schedule_id)
        return schedule_out(self.context.store.update_schedule(schedule_id, changed))

    def remove(self, who: Identity, schedule_id: str) -> None:
        """Delete a schedule; its jobs stay. Safe to repeat, but raises NotFound then."""
        self._own(who, schedule_id)
        self.context.store.remove_schedule(schedule_id)

    def run(self, who: Identity, schedule_id: str, body: ScheduleRunIn | None = None) -> RequestOut:
        """Submit the job now; the times and the result of the last one do not change.

        Raises:
            NotFound: the caller has no such schedule.
            Refused: the job is not admitted, or it starts rehearsals.
        """
        schedule = self._own(who, schedule_id)
        _check_of_job(schedule)
        body = body or ScheduleRunIn()
        key = f"{schedule.id}/{body.idempotency_key or new_id('n')}"
        job = job_of(self.context, schedule, key)
        job = job.model_copy(update={"parameters": {**job.parameters, **body.parameters}})
        return JobService(self.context).submit(who, job)

    def _own(self, who: Identity, schedule_id: str) -> Schedule:
        schedule = self.context.store.schedule(schedule_id)
        if schedule.owner != who.name and not self._teaches(who, schedule.course):
            raise NotFound(
                f"There is no schedule {schedule_id[:80]!r} of yours.",
                accepted="List your schedules with: carrel schedule list",
            )
        return schedule

    def _teaches(self, who: Identity, course: str) -> bool:
        return bool(course) and (who.admin or course in self.context.store.taught_by(who.name))


def _check_of_job(schedule: Schedule) -> None:
    if schedule.course:
        raise Conflict(
            f"{schedule.id} starts rehearsals of {schedule.course}, and has no job.",
            accepted=f"Rehearse now with: carrel course rehearse {schedule.course}",
        )


def job_of(context: Context, schedule: Schedule, key: str) -> JobIn:
    """Return the job of a schedule, to be submitted with this idempotency key."""
    return labelled(_job_of(context, schedule), schedule.id, key=key)


def labelled(job: JobIn, schedule_id: str, *, key: str) -> JobIn:
    """Return the job with the label of its schedule and an idempotency key."""
    labels = {**job.labels, SCHEDULE_LABEL: schedule_id}
    return job.model_copy(update={"labels": labels, "idempotency_key": key})


def _job_of(context: Context, schedule: Schedule) -> JobIn:
    return JobIn.model_validate_json(context.store.schedule_job(schedule.id))


def _stored(job: JobIn) -> str:
    text = json.dumps(job.model_dump(mode="json", exclude_unset=True))
    if len(text) > MAX_JOB_BYTES:
        raise TooLarge(
            f"The job of a schedule, with its files, may have at most {MAX_JOB_BYTES >> 20} MiB; "
            f"this one has {len(text) / (1 << 20):.1f} MiB.",
            accepted="Keep data in your home, and name a working folder.",
            field="job",
        )
    return text


def _what(job: JobIn) -> str:
    text = job.notebook.name if job.notebook else shlex.join(job.command)
    return text[:_WHAT_LENGTH]


def schedule_out(schedule: Schedule) -> ScheduleOut:
    values = {name: value for name, value in asdict(schedule).items() if name in _SHOWN}
    upcoming = []
    if schedule.next_at is not None:
        times = CronTimes.parse(schedule.cron, schedule.zone)
        upcoming = times.upcoming(schedule.next_at, SHOWN_TIMES)
    return ScheduleOut.model_validate(values | {"state": str(schedule.state), "upcoming": upcoming})
