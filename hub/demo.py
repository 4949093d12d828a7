"""What the demo adds once the hub answers: sample group, members, sample notebooks, a course."""

from __future__ import annotations

import logging
import threading

from ..courses.files.bundle import FileBundle
from ..courses.files.transfer import store_bundle
from ..courses.model.records import Assignment, Course, LateRule, LateStep, Member, ReleasedVersion
from ..courses.sample import FIRST_UNIT, copy_course_into, copy_into, first_unit
from ..courses.services import CourseServices
from .accounts.demo import DEMO_GROUP, demo_accounts
from .errors import CarrelError, NotFound
from .runtime.context import Context
from .scheduling.model.snapshot import Group

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_MAX_DEVICES = 4
_MAX_DEVICES_PER_USER = 2


def prepare_demo(courses: CourseServices, stopping: threading.Event) -> None:
    """Make the sample group, its members and its course, once; later changes to them stay."""
    while not stopping.is_set():
        try:
            if not _has_group(courses.access.context):
                _prepare(courses.access.context)
            prepare_course(courses)
        except CarrelError as error:
            log.info("demo: %s", error)
            stopping.wait(_RETRY_SECONDS)
        else:
            courses.access.context.notifier.notify()
            return


def _has_group(context: Context) -> bool:
    try:
        context.store.group(DEMO_GROUP)
    except NotFound:
        return False
    return True


def _prepare(context: Context) -> None:
    accounts = demo_accounts()
    for account in accounts:
        # The role of administrator comes from the account at sign-in: the hub lets no service
        # give it.
        context.hub.add_user(account.name, admin=False)
        home = context.files.home(account.name)
        copy_into(home)
        if account.role == "teacher":
            copy_course_into(home)
    context.hub.add_to_group(DEMO_GROUP, tuple(account.name for account in accounts))
    # The group comes last: its presence says that everything before it is done.
    context.store.put_group(
        Group(
            name=DEMO_GROUP,
            max_devices=_MAX_DEVICES,
            max_devices_per_user=_MAX_DEVICES_PER_USER,
        )
    )
    teachers = [account.name for account in accounts if account.role == "teacher"]
    context.store.set_teachers(DEMO_GROUP, teachers)


TITLE = "GPU programming for everybody"


_DAY = 86400.0


_OPEN_DAYS = 14


def prepare_course(courses: CourseServices) -> None:
    """Make what is not there yet; what is stays as people have changed it.

    Raises:
        CarrelError: a store does not answer.
    """
    now, store = courses.access.context.clock(), courses.access.store
    teacher = next(each.name for each in demo_accounts() if each.role == "teacher")
    if DEMO_GROUP not in {course.name for course in store.courses()}:
        students = [each.name for each in demo_accounts() if each.role == "student"]
        store.put_course(Course(name=DEMO_GROUP, title=TITLE, created_at=now, created_by="admin"))
        members = [Member(course=DEMO_GROUP, person=person) for person in students]
        store.put_members(DEMO_GROUP, members)
    if store.assignments(DEMO_GROUP):
        return
    source, for_students = (
        store_bundle(courses.assignments.blobs, FileBundle.of(files.items()))
        for files in first_unit()
    )
    unit = Assignment(
        course=DEMO_GROUP,
        name=FIRST_UNIT,
        due=(now // _DAY + _OPEN_DAYS) * _DAY + 18 * 3600,
        late=LateRule(steps=(LateStep(seconds=86400, penalty=0.1),)),
    )
    made = ReleasedVersion(
        course=DEMO_GROUP,
        assignment=FIRST_UNIT,
        version=0,
        files=for_students,
        source=source,
        released_at=now,
        released_by=teacher,
    )
    store.release(unit, made)
