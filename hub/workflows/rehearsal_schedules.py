"""Schedules that start rehearsals of a course; its teachers see, pause and remove them all.

They are schedules like those of jobs, with the body of a rehearsal in place of a job.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...courses.rehearsals.service import RehearsalService
from ..admission.request_factory import check_text, new_id
from ..errors import Forbidden, NotAMember, NotFound
from ..messages import units
from ..records.identity import Identity
from ..records.schedules import Schedule
from ..runtime.context import Context
from ..schemas.coursework.rehearsals import RehearsalIn, RehearsalScheduleIn
from ..schemas.schedules import ScheduleOut, SchedulesOut
from .cron import CronTimes
from .schedules import MOST_SCHEDULES, schedule_out


@dataclass(frozen=True, slots=True)
class RehearsalSchedules:
    """The schedules of a course's rehearsals."""

    context: Context
    rehearsals: RehearsalService

    def create(self, who: Identity, course: str, body: RehearsalScheduleIn) -> ScheduleOut:
        """Store a schedule, after all checks that a rehearsal would make now. For teachers.

        Raises:
            Refused: a rehearsal is not possible, the times are invalid, or there are too many.
        """
        now = self.context.clock()
        times = CronTimes.parse(body.cron, body.zone)
        check_text(body.idempotency_key, "idempotency_key")
        order = RehearsalIn(image=body.image, assignment=body.assignment)
        self.rehearsals.check(who, course, order)
        schedule_id = new_id("c")
        new = Schedule(
            id=schedule_id,
            owner=who.name,
            group=course,
            course=course,
            what=_what(course, order),
            devices=0,
            cron=times.expression,
            zone=body.zone,
            created_at=now,
            next_at=times.after(now),
            idempotency_key=body.idempotency_key or schedule_id,
        )
        text = order.model_dump_json()
        return schedule_out(self.context.store.add_schedule(new, text, most=MOST_SCHEDULES))

    def all(self, who: Identity, course: str) -> SchedulesOut:
        """List the schedules of a course, oldest first. For teachers and graders."""
        self.rehearsals.check_reader(who, course)
        found = self.context.store.schedules_of_course(course)
        return SchedulesOut(schedules=[schedule_out(each) for each in found])

    def start(self, who: Identity, schedule: Schedule, key: str) -> str:
        """Start the rehearsal of a schedule for one time; return its id.

        Args:
            who: the owner of the schedule, as they are now.
            key: the same one returns the first rehearsal.

        Raises:
            NotAMember: the owner does not teach the course any more.
            Refused: a rehearsal is not possible.
        """
        order = RehearsalIn.model_validate_json(self.context.store.schedule_job(schedule.id))
        try:
            return self.rehearsals.start(who, schedule.course, order, key=key).id
        except (Forbidden, NotFound):
            if self.rehearsals.may_start(who, schedule.course):
                raise
            raise NotAMember(
                f"{schedule.owner} does not teach {schedule.course} any more.",
                accepted="A present teacher resumes it, and owns it then.",
            ) from None


def _what(course: str, order: RehearsalIn) -> str:
    scope = f"{order.assignment} of {course}" if order.assignment else course
    image = f" on {units.short_reference(order.image)}" if order.image else ""
    return f"Rehearsal of {scope}{image}"
