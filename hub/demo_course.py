"""The sample course of the demo: its class, and its first unit on everybody's desk.

What is handed out of the unit lies beside its source, made by nbgrader already: making it takes
seconds, and nbgrader, which a newcomer may not have yet.
"""

from __future__ import annotations

from ..courses.files.bundle import Parcel
from ..courses.files.transfer import kept
from ..courses.model.records import Assignment, Course, HandOut, LateRule, LateStep, Member
from ..courses.sample import FIRST_UNIT, first_unit
from ..courses.services import CourseDesk
from .accounts.demo import DEMO_GROUP, demo_accounts

TITLE = "GPU programming for everybody"
_DAY = 86400.0
_OPEN_DAYS = 14


def prepare_course(desk: CourseDesk) -> None:
    """Make what is not there yet; what is stays as people have changed it.

    Raises:
        CarrelError: a store does not answer.
    """
    now, store = desk.commands.clock(), desk.store
    teacher = next(each.name for each in demo_accounts() if each.role == "teacher")
    if DEMO_GROUP not in {course.name for course in store.courses()}:
        students = [each.name for each in demo_accounts() if each.role == "student"]
        store.put_course(Course(name=DEMO_GROUP, title=TITLE, created_at=now, created_by="admin"))
        members = [Member(course=DEMO_GROUP, person=person) for person in students]
        store.put_members(DEMO_GROUP, members)
    if store.assignments(DEMO_GROUP):
        return
    source, handed_out = (kept(desk.blobs, Parcel.of(files.items())) for files in first_unit())
    unit = Assignment(
        course=DEMO_GROUP,
        name=FIRST_UNIT,
        due=(now // _DAY + _OPEN_DAYS) * _DAY + 18 * 3600,
        late=LateRule(steps=(LateStep(seconds=86400, penalty=0.1),)),
    )
    made = HandOut(
        course=DEMO_GROUP,
        assignment=FIRST_UNIT,
        version=0,
        files=handed_out,
        source=source,
        released_at=now,
        released_by=teacher,
    )
    store.release(unit, made)
