"""The semester plan: what the courses will need before their due dates.

The work of one student comes from the first of these that is known:

1. usage of the course in the week before its earlier due dates, per student
2. trial runs of the assignment (official checks, rehearsals, gradings), ``RUNS_EACH`` per student
3. the devices and the time limit of the assignment, ``RUNS_EACH`` per student
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from statistics import median

from ...courses.model.records import Assignment
from ...courses.roster.class_list import ClassList
from ..errors import InvalidInput, NotFound
from ..insight.semester_demand import (
    BUSY_HOURS,
    DAY,
    DEFAULT_SHARES,
    HOUR,
    DueWork,
    ProposedReservation,
    SemesterDemand,
    day_text,
    semester_demand,
    shares_of,
)
from ..records.calendar import Term, term_of
from ..records.identity import Identity, require_admin
from ..records.requests import RequestFilter
from ..records.usage import LedgerFilter, UsageBy
from ..runtime.context import Context
from ..scheduling.model.text import plural
from ..scheduling.quota.tree import GroupTree, group_max
from ..schemas.calendar import (
    DemandClashOut,
    DemandDayOut,
    DueWorkOut,
    ProposedReservationOut,
    ReservationIn,
    SemesterPlanOut,
)

RUNS_EACH = 4
"""Runs of one student for one due date, where earlier due dates do not tell."""
AHEAD_DAYS = 120
HISTORY_DAYS = 366
_TRIALS = 200
"""Newest runs of an assignment that are read."""
_LONGEST_DAYS = 366
_LONGEST_WHY = 500
"""Characters that ``ReservationIn`` accepts."""


@dataclass(slots=True)
class _Gathered:
    """Works with their sources, and sentences about what is not planned."""

    works: list[tuple[DueWork, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SemesterPlanner:
    """Plans the demand of all courses, for administrators."""

    context: Context
    class_list: ClassList

    def plan(self, who: Identity, term: str = "") -> SemesterPlanOut:
        """Return the plan up to the end of a term; by default of the running one.

        Raises:
            Forbidden: the caller is not an administrator.
            NotFound: there is no such term.
            InvalidInput: it is over.
        """
        require_admin(who)
        with self.context.store.together():
            return self._plan(term)

    def _plan(self, term: str) -> SemesterPlanOut:
        store, now = self.context.store, self.context.clock()
        chosen = self._term(term, now)
        until = now + AHEAD_DAYS * DAY if chosen is None else chosen.ends_at
        until = min(until, now + _LONGEST_DAYS * DAY)
        gathered = _Gathered()
        groups = store.groups()
        tree = GroupTree(groups)
        courses = self.class_list.store.courses()
        names = frozenset(course.name for course in courses)
        for course in courses:
            if course.archived_at is None:
                within = _groups_of(course.name, tree, names)
                self._gather(course.name, within, gathered, now, until)
        pool = sum(device.schedulable for device in store.devices())
        found = semester_demand(
            [work for work, _ in gathered.works],
            store.reservations(),
            pool=pool,
            since=now,
            until=until,
            most={
                group.name: min(map(group_max, tree.ancestry(group.name)), default=0)
                for group in groups
            },
        )
        name = "" if chosen is None else chosen.name
        return _out(found, gathered, since=now, until=until, term=name, pool=pool)

    def _term(self, name: str, now: float) -> Term | None:
        terms = self.context.store.terms()
        if not name:
            return term_of(terms, now)
        found = next((each for each in terms if each.name == name), None)
        if found is None:
            known = ", ".join(each.name for each in terms) or "none yet"
            raise NotFound(f"There is no term {name[:80]}.", accepted=f"Terms: {known}.")
        if found.ends_at <= now:
            raise InvalidInput(
                f"The term {name} is over.", accepted="A term that has not ended.", field="term"
            )
        return found

    def _gather(
        self, course: str, within: frozenset[str], gathered: _Gathered, now: float, until: float
    ) -> None:
        """Add the due dates of one course, whose usage is that of some groups."""
        students = len(self.class_list.students(course))
        assignments = self.class_list.store.assignments(course)
        if not students:
            gathered.notes.append(f"{course} has no students: nothing is planned for it.")
            return
        coming = []
        for each in assignments:
            if each.due is None or not isfinite(each.due):
                gathered.notes.append(f"{course}: {each.name} has no due date.")
            elif now < each.due <= until:
                coming.append(each)
        if not coming:
            gathered.notes.append(f"{course} has no due date in this period.")
            return
        past = [each for each in assignments if _was_due(each, now)]
        earlier = self._earlier_days(within, [each.due for each in past if each.due is not None])
        for each in coming:
            assert each.due is not None
            hours, source = self._hours_each(course, each, earlier, students, len(past))
            if not hours:
                gathered.notes.append(f"{course}: {each.name} is not planned. {source}")
                continue
            work = DueWork(
                course=course,
                assignment=each.name,
                due=each.due,
                zone=each.zone,
                students=students,
                hours_each=hours,
                shares=shares_of(earlier),
            )
            gathered.works.append((work, source))

    def _earlier_days(self, within: frozenset[str], past: Sequence[float]) -> list[float]:
        """Return the mean device-hours before earlier due dates, the last day first.

        Usage in the weeks before several due dates is divided equally among them.
        """
        sums = [0.0] * len(DEFAULT_SHARES)
        for due in past:
            for number in range(len(sums)):
                end = due - number * DAY
                which = LedgerFilter(groups=within, since=end - DAY, until=end)
                rows = self.context.store.used(which, UsageBy.OWNER, now=self.context.clock())
                used = sum(row.total for row in rows) / HOUR
                sums[number] += used / _weeks_over(end - DAY, end, past)
        return [amount / len(past) for amount in sums] if past else sums

    def _hours_each(
        self,
        course: str,
        assignment: Assignment,
        earlier: Sequence[float],
        students: int,
        past: int,
    ) -> tuple[float, str]:
        """Return the device-hours of one student, and how they are known."""
        total = sum(earlier)
        if total > 0:
            return total / students, f"usage before {plural(past, 'earlier due date')}"
        trials = list(self._trials(course, assignment.name))
        if trials:
            each = median(trials)
            source = f"{plural(len(trials), 'trial run')}, {RUNS_EACH} runs per student assumed"
            return RUNS_EACH * each / HOUR, source
        limit = assignment.devices * assignment.seconds
        if limit:
            return RUNS_EACH * limit / HOUR, (
                f"time limit of the assignment, {RUNS_EACH} runs per student assumed"
            )
        return 0.0, (
            "It has no trial run, its grading uses no devices, and the course has no earlier usage."
        )

    def _trials(self, course: str, assignment: str) -> Iterator[float]:
        """Yield the device-seconds of the newest runs of an assignment that held devices."""
        labels = {"course": course, "assignment": assignment}
        found = self.context.store.requests(RequestFilter(labels=labels, limit=_TRIALS))
        for request in found:
            if request.ended_at is not None and request.started_at is not None and request.devices:
                seconds = request.ended_at - request.started_at
                if seconds > 0 and isfinite(seconds):
                    yield seconds * request.devices


def _groups_of(course: str, tree: GroupTree, courses: frozenset[str]) -> frozenset[str]:
    """Return the groups of a course: those at and below its own, without those of other courses."""
    below = tree.subtree(course)
    others = (tree.subtree(name) for name in below & courses if name != course)
    return below.difference(*others) | {course}


def _weeks_over(since: float, until: float, due_dates: Sequence[float]) -> float:
    """Return how many of the weeks before due dates a period lies in, in parts if need be."""
    week = len(DEFAULT_SHARES) * DAY
    overlaps = (min(until, due) - max(since, due - week) for due in due_dates)
    return sum(max(0.0, overlap) for overlap in overlaps) / (until - since)


def _was_due(assignment: Assignment, now: float) -> bool:
    due = assignment.due
    return due is not None and isfinite(due) and now - HISTORY_DAYS * DAY < due <= now


def _out(
    found: SemesterDemand,
    gathered: _Gathered,
    *,
    since: float,
    until: float,
    term: str,
    pool: int,
) -> SemesterPlanOut:
    return SemesterPlanOut(
        since=since,
        until=until,
        term=term,
        pool=pool,
        works=[
            DueWorkOut(
                course=work.course,
                assignment=work.assignment,
                due=work.due,
                students=work.students,
                device_hours=work.device_hours,
                source=source,
            )
            for work, source in sorted(gathered.works, key=lambda each: each[0].due)
        ],
        days=[
            DemandDayOut(
                day=day_text(day.at),
                device_hours=dict(day.device_hours),
                reserved=dict(day.reserved),
                needed=day.needed,
            )
            for day in found.days
        ],
        clashes=[
            DemandClashOut(
                day=day_text(each.at), needed=each.needed, pool=each.pool, parts=dict(each.parts)
            )
            for each in found.clashes
        ],
        proposals=[_proposal_out(each) for each in found.proposals],
        notes=_notes(gathered, until),
    )


def _proposal_out(found: ProposedReservation) -> ProposedReservationOut:
    first = found.works[0]
    when = f"{found.begins:%Y-%m-%d} {found.begins:%H:%M}-{found.ends:%H:%M} {first.zone}"
    names = " and ".join(work.assignment for work in found.works)
    why = f"Before {names} {'is' if len(found.works) == 1 else 'are'} due"[:_LONGEST_WHY]
    return ProposedReservationOut(
        course=first.course,
        assignment=names,
        due=first.due,
        wanted=found.wanted,
        reservation=ReservationIn(group=first.course, devices=found.devices, when=when, why=why)
        if found.devices
        else None,
    )


def _notes(gathered: _Gathered, until: float) -> list[str]:
    if not gathered.works and not gathered.notes:
        return ["There are no courses: nothing is planned."]
    # A term ends at midnight after its last day.
    end = f"{datetime.fromtimestamp(until - 1, UTC):%-d %b %Y}"
    return [
        f"A day's work is assumed to fall into {BUSY_HOURS:.0f} hours of it. Students are those of "
        f"the rosters today; the plan covers due dates until {end}.",
        *gathered.notes,
    ]
